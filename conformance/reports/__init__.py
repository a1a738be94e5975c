"""Reports: terminal, JSON, JUnit and HTML."""
