"""Permission rules and their evaluation. Pure: no files, no clock, no waiting."""
