"""The entry: a look at the arguments, then click; every error becomes one line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

import os
import sys

SOMEWHERE = "system"
"""The place of an error of the system that does not say where it happened."""


def main() -> None:
    """Run the command line and end the process."""
    prepare()
    sys.exit(run(sys.argv[1:]))


def prepare() -> None:
    """Streams that take any text: one that is closed swallows it, one of a narrow encoding escapes it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - lives on
        else:
            stream.reconfigure(errors="backslashreplace")


def run(arguments: list[str]) -> int:
    """Carry out a command, deliver what it printed, and answer the exit code."""
    code, complaint = carry_out(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout.fileno())  # Whoever read our output has had enough.
    except OSError as error:
        silence(sys.stdout.fileno())
        if complaint is None or complaint.startswith(SOMEWHERE):
            complaint = f"standard output: {error.strerror or error}"
        code = code or 1
    tell("" if complaint is None else line_of(complaint))
    return code


def carry_out(arguments: list[str]) -> tuple[int, str | None]:
    """The exit code of a command, and what there is to complain about."""
    if arguments in (["--version"], ["-V"]):
        from holdfast.version import __version__

        sys.stdout.write(f"holdfast {__version__}\n")  # the one answer that needs nothing else
        return 0, None

    import click

    from holdfast.cli.root import root
    from holdfast.errors import HoldfastError

    try:
        code = root.main(args=arguments, prog_name="holdfast", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return 130, "interrupted"
    except click.ClickException as error:
        hint = f" (try '{error.ctx.command_path} --help')" if _is_usage(error) and error.ctx else ""  # type: ignore[attr-defined]
        return error.exit_code, f"{error.format_message()}{hint}"
    except BrokenPipeError:
        return 0, None
    except HoldfastError as error:
        return 1, str(error)
    except OSError as error:
        return 1, f"{error.filename or SOMEWHERE}: {error.strerror or error}"
    except UnicodeEncodeError as error:
        return 1, f"{error.object[:60]!a} is not valid UTF-8, so no record can hold it; give another"
    except Exception as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        return 1, f"internal error: {type(error).__name__}: {error} (HOLDFAST_DEBUG=1 shows where)"
    # A command that ends by `ctx.exit` has its code returned here; the others return nothing.
    return (code if isinstance(code, int) else 0), None


def _is_usage(error: Exception) -> bool:
    import click

    return isinstance(error, click.UsageError)


def line_of(complaint: str) -> str:
    """One line, with nothing in it that a terminal would obey."""
    words = " ".join(complaint.split())
    return f"holdfast: {''.join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in words)}\n"


def tell(line: str) -> None:
    """Write to standard error, with what was left there before; if it takes nothing, nobody is told."""
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr.fileno())


def silence(fd: int) -> None:
    """Let the rest go nowhere, so that the interpreter does not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
