"""Compaction: the model's view begins anew with a summary; what was said stays stored."""
