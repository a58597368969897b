"""The relational layout that SQLite and files share: its tables, its threads, its reader and its writer."""
