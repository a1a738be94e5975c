"""The bench: workload profiles, clients, results, and what they are compared with."""
