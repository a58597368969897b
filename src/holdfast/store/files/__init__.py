"""The files store: the seeds' JSON tree as the truth, a journal for durability, an index to find things."""
