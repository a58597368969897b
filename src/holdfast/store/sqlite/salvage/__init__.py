"""Reads what is left in a damaged store file, without SQLite: pages, trees, rows, and a new store of them."""
