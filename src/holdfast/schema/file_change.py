"""What an agent did to one file, so that it can be undone: what the file held before, and after."""

from holdfast.schema.wire import Count, Wire


class FileChange(Wire, frozen=True, kw_only=True):
    """One file, by its real absolute path. `before` and `after` are ids of contents in the shadow repository
    of the worktree; None where there was no file. Modes are those of `stat`; None where they are not known.

    `observed`: not a tool of ours made it, but it was seen in the tree after a command, among which changes
    of the user may be. `covered`: False where the content before could not be kept, so that nothing can be
    put back.
    """

    path: str
    before: str | None = None
    after: str | None = None
    before_mode: Count | None = None
    after_mode: Count | None = None
    observed: bool = False
    covered: bool = True
