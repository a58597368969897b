"""`holdfast info`: facts for a report of a fault."""
