"""Web pages as text for a model."""
