"""The box: agents' commands run with a read-only world, a writable worktree, no network (docs/security.md).

`policy` says what a command may reach, `compose` makes one from places and settings, `start` puts the
launcher before a command, `launcher/` is that process, `host_level` says what this host can do, `denial`
finds in the output what the box stopped.
"""
