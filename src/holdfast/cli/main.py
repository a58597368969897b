"""The entry: a look at the arguments, then click; every error becomes one line and an exit code.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

import os
import sys


def main() -> None:
    """Run the command line and end the process."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from holdfast.version import __version__

        print(f"holdfast {__version__}")  # noqa: T201 - the one answer that needs nothing else
        return
    sys.exit(run(arguments))


def run(arguments: list[str]) -> int:
    """Carry out a command and answer its exit code."""
    import click

    from holdfast.cli.root import root
    from holdfast.errors import HoldfastError

    try:
        root.main(args=arguments, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return 130
    except click.ClickException as error:
        hint = f" (try '{error.ctx.command_path} --help')" if _is_usage(error) and error.ctx else ""  # type: ignore[attr-defined]
        complain(f"{error.format_message()}{hint}")
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has had enough; the interpreter must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except HoldfastError as error:
        complain(str(error))
        return 1
    except OSError as error:
        complain(f"{error.filename or 'system'}: {error.strerror or error}")
        return 1
    except Exception as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        complain(f"internal error: {type(error).__name__}: {error} (HOLDFAST_DEBUG=1 shows where)")
        return 1
    return 0


def _is_usage(error: Exception) -> bool:
    import click

    return isinstance(error, click.UsageError)


def complain(text: str) -> None:
    """One line on standard error."""
    print(f"holdfast: {' '.join(text.split())}", file=sys.stderr)  # noqa: T201
