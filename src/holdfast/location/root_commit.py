"""Names a repository by its first commit, without obeying the repository.

A repository's own configuration can make git start programs: a lazy fetch of a missing object, a file
monitor, a pager, a helper, by way of an include. So git never sees it. It runs in a folder of ours, with
links to the repository's objects and refs (the layout of git's own `git-new-workdir`) and a configuration
that we wrote. Nothing that git reads there can name a program, and an object that is missing is an error.
"""

import os
import re
from pathlib import Path

from holdfast import git
from holdfast.errors import ContextError
from holdfast.location.small_text import small_text

GIT_TIMEOUT_S = 5
CONFIG_BYTES_MAX = 1 << 20
SHALLOW_BYTES_MAX = 16 << 20
WORKTREES_MAX = 1000

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"ref: refs/[\x21-\x7e]{1,1000}")
_SECTION = re.compile(r"\[\s*([A-Za-z0-9.-]+)\s*\]\s*(.*)")
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*=\s*\"?([A-Za-z0-9]+)\"?\s*(?:[#;].*)?")

_LINKED = ("objects", "refs", "packed-refs", "reftable")
_EXTENSIONS = {"objectformat": ("sha1", "sha256"), "refstorage": ("files", "reftable")}


def root_commit(common: Path) -> str | None:
    """The least of the root commits of all refs; None where there is no commit, no git, or a damaged one."""
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-git-") as folder:
            return _least(_ask(common, Path(folder)))
    except OSError as error:
        raise ContextError(f"cannot ask git about {common}: {error.strerror or error}") from error


def _least(lines: str) -> str | None:
    return min(filter(_COMMIT.fullmatch, lines.split()), default=None)


def _ask(common: Path, ours: Path) -> str:
    from subprocess import TimeoutExpired

    heads = _furnish(common, ours)
    try:
        done = git.run(
            ["rev-list", "--max-parents=0", "--all", "--stdin"],
            cwd=ours,
            git_dir=ours,
            given="".join(f"{head}\n" for head in heads).encode(),
            timeout_s=GIT_TIMEOUT_S,
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return ""  # There is no git.
    except TimeoutExpired:
        # Another answer would file a session under another project.
        raise ContextError(
            f"git took longer than {GIT_TIMEOUT_S} s to find the first commit of {common}; try again, "
            "or let `git commit-graph write --reachable` make it faster"
        ) from None
    if done.returncode < 0:
        raise ContextError(f"git was ended by signal {-done.returncode} while it read {common}; try again")
    return done.stdout.decode("ascii", "replace") if done.returncode == 0 else ""


def _furnish(common: Path, ours: Path) -> list[str]:
    """Make our folder a git directory over another's data; answers what its worktrees have checked out."""
    extensions = _extensions(small_text(common / "config", bytes_max=CONFIG_BYTES_MAX))
    lines = ["[core]", "bare = true", f"repositoryformatversion = {int(bool(extensions))}", "[extensions]"]
    lines += [f"{name} = {value}" for name, value in extensions.items()]
    (ours / "config").write_text("".join(f"{line}\n" for line in lines))
    for name in _LINKED:
        if (common / name).exists():
            (ours / name).symlink_to(common / name)
    head = small_text(common / "HEAD")
    is_head = _COMMIT.fullmatch(head) or _BRANCH.fullmatch(head)
    (ours / "HEAD").write_text(f"{head if is_head else 'ref: refs/heads/main'}\n")
    # Where a shallow clone ends, its history begins.
    shallow = _COMMIT.findall(small_text(common / "shallow", bytes_max=SHALLOW_BYTES_MAX))
    if shallow:
        (ours / "shallow").write_text("".join(f"{commit}\n" for commit in shallow))
    return [head for head in _worktree_heads(common / "worktrees") if _COMMIT.fullmatch(head)]


def _worktree_heads(worktrees: Path) -> list[str]:
    from itertools import islice

    try:
        with os.scandir(worktrees) as entries:
            return [small_text(worktrees / entry.name / "HEAD") for entry in islice(entries, WORKTREES_MAX)]
    except OSError:
        return []


def _extensions(config: str) -> dict[str, str]:
    """How objects and refs are written: all that we take from a repository's configuration."""
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, config.splitlines()):
        heading = _SECTION.fullmatch(line)
        if heading is not None:
            section, line = heading[1].lower(), heading[2]  # noqa: PLW2901 - a setting may follow it
        elif line.startswith("["):
            section = ""
        setting = _SETTING.fullmatch(line)
        if section == "extensions" and setting is not None:
            name, value = setting[1].lower(), setting[2].lower()
            if value in _EXTENSIONS.get(name, ()):
                found[name] = value
    return found
