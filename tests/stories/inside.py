"""The inside of a running application, for stories that have to reach it: each private name stands here only.

A story that can be told through the public API is told so.
"""

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from anyio.abc import Process

from holdfast.app import Holdfast
from holdfast.location.ending_processes import EndingProcesses
from holdfast.runtime.engine.engine import Engine
from holdfast.runtime.history.session_history import SessionHistory
from holdfast.runtime.process.coordinator import Coordinator
from holdfast.runtime.process.running_session import RunningSession
from holdfast.schema.prompt import AdmittedPrompt
from holdfast.workspace.workspace import Workspace


def coordinator(hf: Holdfast) -> Coordinator:
    """Which sessions this process runs; it is made if there was none yet."""
    return hf._prompting_now()._coordinator


def coordinator_if_any(hf: Holdfast) -> Coordinator | None:
    """The same, None where nothing has run yet."""
    return hf._coordinator


def engine(hf: Holdfast) -> Engine:
    """What running sessions work with."""
    return hf._prompting_now().engine


def waiting_launcher(hf: Holdfast) -> Process | None:
    """The process that waits for the next command of an agent."""
    waiting = engine(hf).boxes._waiting
    return None if waiting is None else waiting.process


async def wake(hf: Holdfast, session: str) -> None:
    """Have a session looked at, as after a prompt, without one."""
    await coordinator(hf).wake(session)


def owner(hf: Holdfast) -> str:
    """The id under which this process holds sessions; empty while it holds none."""
    return coordinator(hf).lease.id or ""


def running(hf: Holdfast, session: str) -> RunningSession:
    """The run of a session in this process."""
    return coordinator(hf)._entries[session]


def history(hf: Holdfast, session: str) -> SessionHistory:
    """The history that this process remembers of a session."""
    return coordinator(hf)._take_cached(session)[0]


async def taken_up(hf: Holdfast, prompt: AdmittedPrompt) -> None:
    """Wait for a prompt as `process` does, until some process has taken it up."""
    await hf.sessions._prompting()._wait_for_promotion(prompt)


async def workspace(hf: Holdfast, session: str) -> Workspace:
    """What is around a session, as a turn sees it."""
    return await engine(hf).workspace(await hf.sessions.get(session))


def forget_workspaces(hf: Holdfast) -> None:
    """Have settings read again at once, as after a second."""
    hf._workspaces._known.clear()


async def end_tasks(hf: Holdfast) -> None:
    """End the tasks of a process that is dead to its store, without writing anything."""
    held = coordinator_if_any(hf)
    assert held is not None
    await held._background.close()


def cancel_all(hf: Holdfast) -> None:
    """Cancel everything that runs, as when the program around it is torn down."""
    group = coordinator(hf)._background._group
    assert group is not None
    group.cancel_scope.cancel()


def abandon_all(hf: Holdfast) -> None:
    """Stop everything at once, as when the lease is lost."""
    coordinator(hf)._abandon_all()


def followers(hf: Holdfast) -> int:
    """How many follow the feed in this process."""
    return len(hf.feed._broadcast)


def start_in_background(hf: Holdfast, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run something among the tasks that outlive a call."""
    coordinator(hf)._background.start(work)


def hold(hf: Holdfast, session: str) -> AbstractContextManager[None]:
    """Have the files of a session watched, as a client does that follows it."""
    return hf._hold(session)


def server_tools(hf: Holdfast, directory: Path) -> set[str]:
    """The names that MCP servers of a directory, and what is below them, have registered by now."""
    assert hf._servers is not None
    here = hf._servers._connections.at(str(directory))
    assert here is not None
    return here.registry.names()


def watches(hf: Holdfast) -> int:
    """How many projects are watched, or whose watch has not ended yet."""
    known = hf._watches
    return 0 if known is None else len(known._watches) + len(known._ending)


def ending(hf: Holdfast) -> list[EndingProcesses]:
    """The programs that closing waits for: those of calls, and launchers."""
    return [engine(hf).ending, engine(hf).boxes._ending]
