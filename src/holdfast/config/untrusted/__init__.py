"""Settings that the user has not trusted: only the harmless part is kept, and applied last."""
