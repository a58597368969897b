"""Compaction: a summary replaces the beginning of the model view; the history stays stored."""
