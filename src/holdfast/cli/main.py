"""The entry: a look at the arguments, then click; every error becomes one line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something was denied (`run`, `resume`), 4 in conflict
with the user's changes (`revert`, `unrevert`), 130 interrupted, 143 and 129 the same by SIGTERM and SIGHUP.
"""

import os
import sys
import time

INTERRUPTED = 130

TYPE_CHECKING = False  # Importing it from typing would cost `--version` 6 ms.
if TYPE_CHECKING:
    import click

    from holdfast.cli.complaint import Complaint


def main() -> None:
    """Run the command line and end the process."""
    try:
        prepare()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # Outside of the command itself, which sees to its own.
        code = INTERRUPTED
        write_complaint(interrupted(), sys.argv[1:])
    # The module costs 4 ms, which `--version` does not have; whatever takes time has loaded it.
    if code == INTERRUPTED or "signal" in sys.modules:
        ignore_interrupts()
    if "holdfast.cli.end_signals" in sys.modules:  # A command that has something to remove has loaded it.
        from holdfast.cli import end_signals

        code = end_signals.finish(code)
    sys.exit(code)


def prepare() -> None:
    """Streams that always work: one that is closed is empty and swallows everything, one of a narrow encoding
    escapes what it cannot express.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # The lowest free number is its own: no file opened later can be taken for the stream.
            fd = os.open(os.devnull, os.O_RDONLY if name == "stdin" else os.O_WRONLY)
            os.set_inheritable(fd, True)  # noqa: FBT003 - the name says it
            setattr(sys, name, open(fd, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - lives on
        elif name != "stdin":
            stream.reconfigure(errors="backslashreplace")


def ignore_interrupts() -> None:
    """All is done and printed: another Ctrl-C must not spoil the exit code, or the last line."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(arguments: list[str]) -> int:
    """Carry out a command, deliver what it printed, and answer the exit code."""
    begun_s = time.monotonic()
    code, complaint = carry_out(arguments)
    if "holdfast.log.setup" in sys.modules:  # Whatever logs has loaded it.
        from holdfast.log import event

        event.debug("cli", "command.end", code=code, ms=round((time.monotonic() - begun_s) * 1_000))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout.fileno())  # The reader of our output has closed it.
    except OSError as error:
        silence(sys.stdout.fileno())
        if complaint is None or complaint.message.startswith("system:"):
            complaint = unprintable(error)
        code = code or 1
    write_complaint(complaint, arguments)
    return code


def carry_out(arguments: list[str]) -> "tuple[int, Complaint | None]":
    """The exit code of a command, and what there is to complain about."""
    if arguments in (["--version"], ["-V"]):
        from holdfast.version import __version__

        try:
            sys.stdout.write(f"holdfast {__version__}\n")  # the one answer that needs nothing else
        except OSError as error:  # Nothing is buffered where the user wants it so.
            return 1, unprintable(error)
        return 0, None

    import click

    from holdfast.cli.root import root

    try:
        code = root.main(args=arguments, prog_name="holdfast", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error, click.Abort) and error.__cause__ is None:
            write_error("\n")  # A question stands on the line, unanswered.
        return INTERRUPTED, interrupted()
    except click.ClickException as error:
        if isinstance(error, click.exceptions.NoArgsIsHelpError) and not is_for_programs(arguments):
            write_error(f"{error.format_message()}\n")  # A page, where all other complaints are a line.
            return error.exit_code, None
        return error.exit_code, of_usage(error)
    except BrokenPipeError:
        return 0, None
    except Exception as error:
        found = of_error(error)
        if found.name == "UnknownError" and os.environ.get("HOLDFAST_DEBUG"):
            raise
        return found.code, found
    # A command that ends by `ctx.exit` has its code returned here; the others return nothing.
    return (code if isinstance(code, int) else 0), None


def is_for_programs(arguments: list[str]) -> bool:
    """Whether the user asked for JSON."""
    from holdfast.cli.complaint import wants_json

    return wants_json(arguments)


def of_error(error: Exception) -> "Complaint":
    """An error that is none of usage. What it needs is loaded only now."""
    from holdfast.cli import complaint

    return complaint.of_error(error)


def of_usage(error: "click.ClickException") -> "Complaint":
    """An error in what the user typed, with where help is."""
    import click

    from holdfast.cli.complaint import Complaint

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return Complaint("UsageError", "a command is missing; --help lists them")
    if not isinstance(error, click.UsageError):
        return Complaint("InvalidInputError", error.format_message())
    hint = f" (try '{error.ctx.command_path} --help')" if error.ctx else ""
    return Complaint("UsageError", f"{error.format_message()}{hint}")


def unprintable(error: OSError) -> "Complaint":
    """Standard output takes nothing."""
    from holdfast.cli.complaint import Complaint

    return Complaint("SystemError", f"standard output: {error.strerror or error}")


def interrupted() -> "Complaint":
    """The user pressed Ctrl-C."""
    from holdfast.cli.complaint import Complaint

    return Complaint("InterruptedError", "interrupted")


def write_complaint(complaint: "Complaint | None", arguments: list[str]) -> None:
    """Write the last line of a command that failed, and whatever is left of the lines before it."""
    if complaint is None:
        write_error("")
        return
    from holdfast.cli.complaint import text_of

    write_error(text_of(complaint, as_json=is_for_programs(arguments)))


def write_error(line: str) -> None:
    """Write to standard error, with what was left there before; if it takes nothing, the line is lost."""
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr.fileno())


def silence(fd: int) -> None:
    """Let the rest go nowhere, so that the interpreter does not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
