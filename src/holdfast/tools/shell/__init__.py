"""Commands of the shell: how they are put together, allowed, run and shown."""
