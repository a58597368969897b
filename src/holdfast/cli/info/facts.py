"""Gathers what a report of a fault needs, section by section.

What must stay true: no section can fail the others, whatever is broken; no secret is in any of them.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.open_store import place_of, reading
from holdfast.errors import HoldfastError
from holdfast.person import directories
from holdfast.version import __version__

TROUBLE: Final = (HoldfastError, OSError, ValueError)
PACKAGES: Final = ("anyio", "apsw", "asyncpg", "click", "httpx2", "msgspec", "xllamacpp")
PROGRAM_S: Final = 5.0
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")

Section = dict[str, Any]


def gather(ctx: click.Context) -> dict[str, Section]:
    """Every section, in the order in which they are shown."""
    sections: dict[str, Callable[[], Section]] = {
        "versions": versions,
        "system": system,
        "paths": paths,
        "store": lambda: store(ctx),
        "snapshots": snapshots,
        "programs": programs,
        "environment": environment,
        "settings": lambda: settings(ctx),
    }
    return {name: _tried(work) for name, work in sections.items()}


def _tried(work: Callable[[], Section]) -> Section:
    try:
        return work()
    except TROUBLE as error:
        return {"problem": str(error)}


def versions() -> Section:
    """Holdfast, Python, SQLite, and the packages that faults are found in."""
    import apsw

    from holdfast.store.base import FORMAT

    found: Section = {
        "holdfast": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "sqlite": apsw.sqlite_lib_version(),
        "format": FORMAT,
    }
    return found | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def system() -> Section:
    """The machine, and what its terminal says about itself."""
    import locale

    return {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "encoding": f"{sys.stdout.encoding}, {locale.getpreferredencoding(do_setlocale=False)}",
        "terminal": os.environ.get("TERM") or None,
        "box": _box(),
    }


def _box() -> str:
    """Whether commands of agents can be confined here, and if not wholly, why."""
    from holdfast.location.box import host_level

    try:
        known = host_level.known(directories.state())
    except HoldfastError:  # A user without a home has no such folder; "paths" says so.
        known = None
    return str(known or host_level.measured())


def paths() -> Section:
    """Where files lie. What is not there yet is made when it is needed."""
    from holdfast.log import setup

    return {
        "config": str(directories.config()),
        "opencode": str(directories.opencode_config()),
        "data": str(directories.data()),
        "state": str(directories.state()),
        "cache": str(directories.cache()),
        "log": str(setup.path()),
        "python": sys.executable,
        "package": str(Path(__file__).parents[2]),
    }


def store(ctx: click.Context) -> Section:
    """The store: where it is, how large, how many sessions; or why it cannot be read."""
    from holdfast.store.store_url import shown

    place = place_of(ctx)
    found: Section = {"url": shown(place.url), "engine": place.engine}
    if place.path is not None:
        found["bytes"] = _size(place.path)
    try:
        with reading(ctx) as opened:
            found["sessions"] = None if opened is None else _count(opened)
            if opened is None:
                found["state"] = "not made yet"
    except TROUBLE as error:
        found["problem"] = str(error)
    if place.engine == "sqlite" and place.path is not None:
        from holdfast.store.sqlite.backups import Backups
        from holdfast.store.sqlite.database import Database

        backups = Backups(Database(place.path))
        found["backups"] = len(backups.listed())
        if (trouble := backups.trouble()) is not None:
            found["backup failed"] = trouble
    return found


def snapshots() -> Section:
    """What is kept of files outside of the store, so that changes can be shown and undone."""
    from holdfast.location.shadow import stored

    found = list(stored.repositories(directories.data()))
    return {"worktrees": len(found), "bytes": sum(each.size() for each in found)}


def _size(path: Path) -> int | None:
    """How many bytes a store takes, with the files beside it; None where there is none."""
    if path.is_dir():
        return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file())
    beside = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-search")]
    sizes = [each.stat().st_size for each in beside if each.exists()]
    return sum(sizes) if sizes else None


def _count(opened: Any) -> int:
    from holdfast.store.query import LIMIT_MAX, SessionQuery

    count, cursor = 0, None
    while True:
        page = opened.sessions(SessionQuery(archived=None, agent_runs=None, limit=LIMIT_MAX, cursor=cursor))
        count += len(page.sessions) + len(page.damaged)
        cursor = page.next
        if cursor is None:
            return count


def programs() -> Section:
    """Programs that Holdfast uses where they are: each with its version, or None."""
    from holdfast.location import ripgrep

    return {"git": _program(shutil.which("git")), "rg": _program(ripgrep.program())}


def _program(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        ran = subprocess.run(
            [path, "--version"], capture_output=True, timeout=PROGRAM_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{path}: {error}"
    line = ran.stdout.decode(errors="replace").partition("\n")[0].strip()
    return f"{line} ({path})"


def environment() -> Section:
    """Variables that change what Holdfast does, without secrets; of proxies only that they are set."""
    from holdfast.cli.config.group import flags_set
    from holdfast.log import setup
    from holdfast.store.store_url import shown

    found: Section = dict(flags_set())
    if url := os.environ.get("HOLDFAST_STORE"):
        found["HOLDFAST_STORE"] = shown(url)
    for name in (setup.VARIABLE, "HOLDFAST_PAGER", "HOLDFAST_DEBUG", "NO_COLOR", "FORCE_COLOR", "PAGER"):
        if name in os.environ:
            found[name] = os.environ[name]
    for name in (each for upper in PROXIES for each in (upper, upper.lower())):
        if name in os.environ:
            found[name] = "set"
    return found


def settings(ctx: click.Context) -> Section:
    """The settings in force in the current directory, as `holdfast config` shows them."""
    from holdfast.cli.config.current import decided, host_settings_of
    from holdfast.cli.config.group import settings as settings_of
    from holdfast.cli.terminal import current_directory
    from holdfast.config.layers import redact
    from holdfast.location.project import locate
    from holdfast.provider.accounts import credentials
    from holdfast.sessions.folder_trust import Decisions
    from holdfast.workspace.workspace import read_workspace

    try:
        decisions = decided(ctx)
    except TROUBLE:  # A store that cannot be read says so in its own section.
        decisions = Decisions()
    remote = host_settings_of(credentials.load())
    loaded = read_workspace(locate(current_directory()), trusted=decisions.grant, remote=remote).loaded
    value = redact.redacted(loaded.value, loaded.origins)
    found: Section = {".".join(map(str, path)): item for path, item, _ in settings_of(value, loaded.origins)}
    if loaded.warnings or loaded.notices:
        found["warnings"] = [*loaded.warnings, *loaded.notices]
    return found
