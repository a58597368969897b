"""`core/instructions/remote`: instructions that lie at addresses which the user's settings name.

An address is asked again when its copy is older than `FRESH_MS`; while it does not answer the last good copy
holds, or where that is lost what the model was given, and for `QUIET_MS` it is not asked. One that never
answered is left out with a warning, so being offline blocks nothing. What must stay true: an address is
fetched because the user names it (settings that are not trusted cannot), encrypted or from this
machine; redirects are not followed; whatever follows a `?` may be a secret and is never shown.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.context.snapshot import Snapshot
from holdfast.context.source import ABSENT, Codec, ContextSource, Missing
from holdfast.context.sources.instruction_text import Instructions, InstructionText, blocks
from holdfast.context.sources.look import Warn, in_thread
from holdfast.errors import ContextError, HoldfastError
from holdfast.location.instruction_files import BYTES_MAX
from holdfast.net import address_guard
from holdfast.net.last_good import Copy, LastGood
from holdfast.net.stream import Http, SmallAnswer
from holdfast.text import printable

KEY = "core/instructions/remote"
URLS_MAX: Final = 20
WAIT_MS: Final = 4_000
"""Less than a source has in all (`system_context.LIMIT_S`), so that a slow host is no reason to wait more."""
FRESH_MS: Final = 300_000
QUIET_MS: Final = 60_000

_OK = 200
_UNCHANGED = 304
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_INTRODUCTION = "These instructions were fetched from addresses that the person chose."
_CHANGED = (
    "The fetched instructions have changed. What follows is all of them as they are now; it supersedes every "
    "fetched instruction that you were given before."
)
_GONE = "The fetched instructions that you were given before no longer apply."
_CODEC: Codec[Instructions] = Codec(Instructions)
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Fetching(msgspec.Struct, frozen=True):
    """What is needed to fetch."""

    http: Http
    kept: LastGood
    clock: Clock
    warn: Warn


def remote_instructions(
    urls: Sequence[str], fetching: Fetching, *, before: Mapping[str, str] = _NOTHING
) -> ContextSource[Instructions]:
    """The source: all addresses in order, as one whole. `before` is what the model was given of each."""

    async def load() -> Instructions | Missing:
        asked = list(dict.fromkeys(urls))
        if len(asked) > URLS_MAX:
            fetching.warn(f"{len(asked)} addresses have instructions; those after {URLS_MAX} are left out")
        found: dict[str, str] = {}

        async def one(url: str) -> None:
            found[url] = await _text(url, fetching, before.get(url))

        async with anyio.create_task_group() as group:
            for url in asked[:URLS_MAX]:
                group.start_soon(one, url)
        texts = tuple(InstructionText(shown(url), found[url]) for url in asked[:URLS_MAX] if found[url])
        return texts or ABSENT

    return ContextSource(
        key=KEY,
        codec=_CODEC,
        load=load,
        baseline=lambda now: f"{_INTRODUCTION}\n\n{blocks(now)}",
        update=lambda _, now: f"{_CHANGED}\n\n{blocks(now)}",
        removal=lambda _: _GONE,
    )


def texts_in(snapshot: Snapshot, urls: Sequence[str]) -> dict[str, str]:
    """What the model was given of each address; those that are shown alike stand in their order."""
    try:
        texts = _CODEC.decode(snapshot[KEY].value) if KEY in snapshot else ()
    except ContextError:
        return {}  # Of another version.
    left = list(texts)
    found: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        before = next((each for each in left if each.path == shown(url)), None)
        if before is not None:
            left.remove(before)
            found[url] = before.text
    return found


def shown(url: str) -> str:
    """An address without what may be a secret in it."""
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{'' if parts.port is None else f':{parts.port}'}"
    except ValueError:
        return "an address that cannot be read"
    address = f"{parts.scheme}://{host}{parts.path}"
    return printable(address, "?")[:500]


async def _text(url: str, fetching: Fetching, before: str | None) -> str:
    """The instructions, now or as they last were; empty where there are none."""
    copy = await in_thread(lambda: fetching.kept.get(url))
    if copy.text is None and before is not None:
        copy = replace(copy, text=before)  # The copy was lost; it is made again below.
    now_ms = fetching.clock.now_ms()
    if not copy.is_due(now_ms, fresh_ms=FRESH_MS, quiet_ms=QUIET_MS):
        return copy.text or ""
    try:
        renewed = _renewed(copy, await _answer(url, copy, fetching.http), now_ms)
    except (HoldfastError, OSError, ValueError) as error:
        holds = "is left out" if copy.text is None else "holds as it last was"
        fetching.warn(f"instructions from {shown(url)} cannot be fetched: {error}; the text {holds}")
        renewed = replace(copy, failed_ms=now_ms)
    try:
        await in_thread(lambda: fetching.kept.put(url, renewed))
    except HoldfastError as error:
        fetching.warn(f"instructions from {shown(url)} cannot be kept: {error}")
    return renewed.text or ""


async def _answer(url: str, copy: Copy, http: Http) -> SmallAnswer:
    target = address_guard.check(url)
    if target.scheme != "https" and target.host not in _LOOPBACK:
        raise ContextError("only https addresses are fetched")
    etag = None if copy.text is None else copy.etag
    answer = await http.get(url, bytes_max=BYTES_MAX, timeout_ms=WAIT_MS, etag=etag)
    if answer.status == _OK and answer.headers.get("content-type", "").startswith("text/html"):
        # A page to sign in on, most likely; no instructions in any case.
        raise ContextError(f"{target.host} answers with a web page, and no text")
    return answer


def _renewed(copy: Copy, answer: SmallAnswer, now_ms: int) -> Copy:
    if answer.status == _UNCHANGED and copy.text is not None:
        return replace(copy, fetched_ms=now_ms, failed_ms=0)
    if answer.status != _OK:
        raise ContextError(f"the answer is {answer.status}")
    text = answer.body.decode("utf-8-sig").replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
    return Copy(text=text, etag=answer.etag, fetched_ms=now_ms)
