"""The servers of local models that this process has started: one for each model, for all its sessions.

A server starts when it is first needed, on a free port of 127.0.0.1, with a random key that only this process
knows. What must stay true: it never outlives this process (it ends with the pipe that only we hold), it is
waited for no longer than `START_S`, and one that has died is started again at the next request.
"""

import os
import secrets
import sys
from collections.abc import Sequence
from subprocess import DEVNULL

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from holdfast.errors import ProviderError
from holdfast.provider.catalog.model import Model
from holdfast.provider.local import installable
from holdfast.provider.local.catalogue import ADDRESS
from holdfast.provider.local.installable import Installable
from holdfast.provider.local.serve import Broken, Order, Ready
from holdfast.provider.wire.wire import Endpoint
from holdfast.schema import typed

COMMAND = (sys.executable, "-P", "-m", "holdfast.provider.local.serve")
START_S = 60.0
END_S = 5.0
DEATH_S = 1.0
"""A connection breaks a moment before the system says that its process is dead."""

ANSWER_BYTES_MAX = 64 * 1024
# The server needs no key of any provider.
ENVIRONMENT = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR")

_REPORTS: msgspec.json.Decoder[Ready | Broken] = typed.decoder(Ready | Broken)
_CUT = (anyio.BrokenResourceError, anyio.DelimiterNotFound, anyio.EndOfStream, anyio.IncompleteRead)


class _Running(msgspec.Struct, frozen=True):
    process: Process
    port: int
    key: str

    def __repr__(self) -> str:
        return f"_Running({self.port})"


class LocalServers:
    """Made once by the owner of the process's connections, and closed by it."""

    def __init__(self, command: Sequence[str] = COMMAND, *, start_s: float = START_S) -> None:
        self._command = command
        self._start_s = start_s
        self._running: dict[str, _Running] = {}
        self._starting = anyio.Lock()

    async def endpoint(self, model: Model, resolved: Endpoint) -> Endpoint:
        """Where the model answers. The server is started if none runs; trouble is a `ProviderError`."""
        if not is_ours(resolved):
            return resolved
        async with self._starting:
            running = self._running.get(model.api_id)
            if running is None or running.process.returncode is not None:
                await self._forget(model.api_id)
                running = await self._start(_installed(model))
                self._running[model.api_id] = running
        return msgspec.structs.replace(
            resolved,
            base_url=f"http://127.0.0.1:{running.port}/v1",
            key=running.key,
            # It promises to keep a connection after a stream, and closes it: the next request would be lost.
            headers={**resolved.headers, "connection": "close"},
        )

    async def explained(self, model: Model, error: ProviderError) -> ProviderError:
        """The error, or a better one when the reason is that the server has died."""
        running = self._running.get(model.api_id)
        if error.kind != "connection" or running is None:
            return error
        with anyio.move_on_after(DEATH_S):
            code = await running.process.wait()
            return ProviderError(
                f"the server of {model.provider_id}/{model.id} died ({_ended(code)}); "
                "ask again, and a new one is started",
                kind="connection",
                retryable=True,
            )
        return error

    async def aclose(self) -> None:
        """End every server; their memory is free when this returns."""
        with anyio.CancelScope(shield=True):
            for id in list(self._running):
                await self._forget(id)

    async def _start(self, model: Installable) -> _Running:
        key = secrets.token_urlsafe(32)
        limit = model.entry.limit
        assert limit is not None
        path = installable.file(model)
        order = Order(
            path=str(path), alias=model.id, context=int(limit.context), output=int(limit.output), key=key
        )
        process = await anyio.open_process(
            self._command,
            stderr=DEVNULL,
            cwd=path.parent,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            start_new_session=True,  # Ctrl-C in the terminal ends a turn, not the server
        )
        try:
            return _Running(process, await self._answer(process, model, order), key)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _end(process)
            raise

    async def _answer(self, process: Process, model: Installable, order: Order) -> int:
        """The port, once the server says that it listens."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with anyio.fail_after(self._start_s):
                await process.stdin.send(msgspec.json.encode(order) + b"\n")
                answers = BufferedByteReceiveStream(process.stdout)
                line = await answers.receive_until(b"\n", ANSWER_BYTES_MAX)
            report = _REPORTS.decode(line)
        except TimeoutError as error:
            raise ProviderError(
                f"the server of local/{model.id} was not ready within {self._start_s:.0f} s; try again",
                kind="timeout",
                retryable=True,
            ) from error
        except (*_CUT, msgspec.MsgspecError, OSError) as error:
            with anyio.move_on_after(END_S):
                await process.wait()
            raise ProviderError(
                f"the server of local/{model.id} died at its start ({_ended(process.returncode)}); "
                "is there memory enough?",
                kind="connection",
                retryable=True,
            ) from error
        match report:
            case Ready(port=port):
                return port
            case Broken(extra=True):
                raise ProviderError(
                    "a local model needs an optional part: pip install 'holdfast[local]'", kind="unsupported"
                )
            case Broken(why=why):
                raise ProviderError(
                    f"{order.path} cannot be served: {why}; `holdfast models install {model.id}` checks it"
                )

    async def _forget(self, id: str) -> None:
        running = self._running.pop(id, None)
        if running is not None:
            await _end(running.process)


def is_ours(endpoint: Endpoint) -> bool:
    """Whether an endpoint stands for a server of ours that must be started."""
    return endpoint.base_url == ADDRESS


def _installed(model: Model) -> Installable:
    found = installable.find(model.api_id)
    if not installable.file(found).is_file():
        raise ProviderError(
            f"{found.id} is not installed; run `holdfast models install {found.id}`", kind="unsupported"
        )
    return found


async def _end(process: Process) -> None:
    """Close the pipe, which ends the server; one that does not end is killed."""
    assert process.stdin is not None
    await process.stdin.aclose()
    with anyio.move_on_after(END_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()


def _ended(code: int | None) -> str:
    if code is None:
        return "it does not answer"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
