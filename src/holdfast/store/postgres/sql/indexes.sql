-- Indexes that the first stores of format 1 did not have. An index is no content: it is made where it is missed.

CREATE INDEX IF NOT EXISTS session_directory ON {s}.session(directory, updated, n) WHERE updated IS NOT NULL;
CREATE INDEX IF NOT EXISTS session_slug ON {s}.session(slug) WHERE slug IS NOT NULL;
