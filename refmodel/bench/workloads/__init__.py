"""The workload profiles, the requests drawn from them, and the data that is written."""
