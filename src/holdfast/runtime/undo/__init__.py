"""The commit of a staged revert, which the next prompt or command brings about."""
