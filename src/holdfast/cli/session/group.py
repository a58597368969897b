"""The session commands."""

import click

from holdfast.cli.lazy import LazyGroup

_HERE = "holdfast.cli.session"


@click.group(
    cls=LazyGroup,
    table={
        "list": (f"{_HERE}.list:list_", "Sessions of this project, the last updated first."),
        "show": (f"{_HERE}.show:show", "A session and its latest messages."),
        "search": (f"{_HERE}.search:search", "Find words in titles, messages, tool inputs and paths."),
        "children": (f"{_HERE}.children:children", "The sessions that a session started."),
        "fork": (f"{_HERE}.fork:fork", "Continue from a point in another session."),
        "resume": (f"{_HERE}.resume:resume", "Go on with a session that was left unfinished."),
        "abort": (f"{_HERE}.abort:abort", "Interrupt a session, whichever process runs it."),
        "compact": (f"{_HERE}.compact:compact", "Summarise the beginning, in the model's view."),
        "revert": (f"{_HERE}.revert:revert", "Take back what was said and done from a prompt on."),
        "unrevert": (f"{_HERE}.unrevert:unrevert", "Undo a revert."),
        "shell": (f"{_HERE}.shell:shell", "Run a command of your own in a session's directory."),
        "context": (f"{_HERE}.context:context", "What the model is sent, block by block."),
        "diff": (f"{_HERE}.diff:diff", "What a session changed in files."),
        "rename": (f"{_HERE}.rename:rename", "Give a session another title."),
        "move": (f"{_HERE}.move:move", "Let a session work in another directory."),
        "archive": (f"{_HERE}.archive:archive", "Hide a session from lists."),
        "restore": (f"{_HERE}.archive:restore", "Show an archived session, or that of an agent run, again."),
        "delete": (f"{_HERE}.delete:delete", "Erase a session and everything below it."),
        "export": (f"{_HERE}.export:export", "Write a session to a file."),
        "import": (f"{_HERE}.import_:import_", "Read sessions from such a file."),
    },
)
def session() -> None:
    """Work with sessions. A session is named by its id, the beginning of it, or its slug."""
