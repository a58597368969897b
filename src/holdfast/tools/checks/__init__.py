"""Checks: programs of the user's that look at files after an agent has changed them."""
