"""Which sessions this process runs, and its lease among other processes."""
