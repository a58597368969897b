"""What one running session works with: its dependencies, its limits, its records and its signals."""
