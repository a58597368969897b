"""How git is called: with none of the settings that make it start programs, ours or a repository's.

A repository is a stranger's file: its configuration names programs for file monitoring, hooks, pagers,
signatures, diffs and transports, also by way of an include. What is given on the command line wins over every
file, so each such setting is given there; the user's own files and `GIT_*` variables, which could lead a call
to another repository, are left out. What must stay true: every call of git in this package is made by `run`.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_SETTINGS: Final = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "sequence.editor": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "core.askPass": "",
    "core.alternateRefsCommand": "true",
    "core.attributesFile": os.devnull,
    "credential.helper": "",
    "diff.external": "",
    "interactive.diffFilter": "",
    "log.showSignature": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
}
_SHOW_DIFFS: Final = frozenset(("diff", "log", "show", "diff-tree", "diff-index", "diff-files"))
"""A driver for diffs has a name of the repository's choice, so no setting of ours can replace it."""


def command(arguments: Sequence[str], more: Mapping[str, str] | None = None) -> list[str]:
    """The command line: `arguments` begin with git's own command; `more` are settings for it."""
    name, *rest = arguments
    given = {**(more or {}), **_SETTINGS}
    settings = [word for key, value in given.items() for word in ("-c", f"{key}={value}")]
    plain = ("--no-ext-diff", "--no-textconv") if name in _SHOW_DIFFS else ()
    return ["git", "--no-pager", "--no-optional-locks", *settings, name, *plain, *rest]


def environment(git_dir: Path | None = None) -> dict[str, str]:
    """The user's environment without what they set for git; `git_dir` is the repository, else it is found
    from the working directory upward.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    nowhere = os.devnull if git_dir is None else str(git_dir)
    return (
        kept
        | ({} if git_dir is None else {"GIT_DIR": str(git_dir)})
        | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "HOME": nowhere,  # for a git that does not know GIT_CONFIG_GLOBAL
            "XDG_CONFIG_HOME": nowhere,
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "LC_ALL": "C",
        }
    )


def run(
    arguments: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    settings: Mapping[str, str] | None = None,
    given: bytes = b"",
) -> "CompletedProcess[bytes]":
    """Run git to its end. Its errors are `OSError` (there is no git) and `subprocess.TimeoutExpired`."""
    import subprocess

    return subprocess.run(
        command(arguments, settings),
        cwd=cwd,
        env=environment(git_dir) | ({} if work_tree is None else {"GIT_WORK_TREE": str(work_tree)}),
        input=given,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
