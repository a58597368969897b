"""Models: what they can do, what they cost, and how they are chosen."""
