"""The engine for more than one machine: PostgreSQL, one function call a commit."""
