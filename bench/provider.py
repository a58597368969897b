"""What reading a stream costs: each adapter against a bare parse loop, in one run. Prints JSON with ratios.

    scripts/bench provider [--quick] [--sdk]

CPU time for parsing and decoding alone, 20,000 deltas in chunks of one event (as a paced stream brings them)
and of 4 KiB (as a burst does). The bare loop splits lines and decodes JSON, and does nothing with it. `--sdk`
adds the vendors' own reading of the same bytes; importing them takes seconds. The bar is 12 µs a delta.

A new adapter needs one line in `WIRES`, and its format in `holdfast.testing.mock_provider.formats`.
"""

import argparse
import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from holdfast.net.event_stream import EventStreamParser
from holdfast.provider.catalog.model import Model, WireKind
from holdfast.provider.request.events import Finish, TextDelta
from holdfast.provider.request.request import Request, Text, User
from holdfast.provider.wire.anthropic.adapter import AnthropicAdapter
from holdfast.provider.wire.gemini.adapter import GeminiAdapter
from holdfast.provider.wire.openai_chat.adapter import OpenAIChatAdapter
from holdfast.provider.wire.openai_responses.adapter import OpenAIResponsesAdapter
from holdfast.provider.wire.wire import Adapter
from holdfast.testing.mock_provider.formats import FORMATS
from holdfast.testing.mock_provider.script import Reply, Say

BAR_US = 12.0
DELTAS, ROUNDS = 20_000, 7
WORD = "words "

WIRES: dict[WireKind, tuple[str, Adapter]] = {
    WireKind.ANTHROPIC: ("/messages", AnthropicAdapter()),
    WireKind.OPENAI_CHAT: ("/chat/completions", OpenAIChatAdapter()),
    WireKind.OPENAI_RESPONSES: ("/responses", OpenAIResponsesAdapter()),
    WireKind.GEMINI: (":streamGenerateContent", GeminiAdapter()),
}


def ours(adapter: Adapter, request: Request, chunks: list[bytes]) -> int:
    """Parse and decode; answers how many deltas came out."""
    parser, decoder, deltas = EventStreamParser(), adapter.decoder(request), 0
    last = None
    for chunk in chunks:
        for frame in parser.feed(chunk):
            for event in decoder.feed(frame):
                deltas += type(event) is TextDelta
                last = event
    for event in decoder.close():  # Some wires end with the body alone.
        last = event
    assert isinstance(last, Finish), last
    return deltas


def bare(chunks: list[bytes], decode: Callable[[bytes], Any]) -> int:
    """The floor: lines, JSON, nothing else."""
    rest, frames = b"", 0
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                decode(line[6:])
                frames += 1
    return frames


async def vendor(wire: WireKind, stream: bytes) -> int:
    """The SDK's reading, fed from memory."""
    import httpx2 as httpx

    async def body() -> AsyncIterator[bytes]:
        for at in range(0, len(stream), 4096):
            yield stream[at : at + 4096]

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body())

    transport = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    asked: Any = [{"role": "user", "content": "x"}]
    count = 0
    if wire is WireKind.ANTHROPIC:
        from anthropic import AsyncAnthropic

        client: Any = AsyncAnthropic(api_key="k", http_client=transport)
        async for _ in await client.messages.create(model="m", max_tokens=9, messages=asked, stream=True):
            count += 1
    elif wire is WireKind.OPENAI_CHAT:
        from openai import AsyncOpenAI

        client = AsyncOpenAI(api_key="k", http_client=transport)
        async for _ in await client.chat.completions.create(model="m", messages=asked, stream=True):
            count += 1
    elif wire is WireKind.OPENAI_RESPONSES:
        from openai import AsyncOpenAI

        client = AsyncOpenAI(api_key="k", http_client=transport)
        async for _ in await client.responses.create(model="m", input=asked, stream=True):
            count += 1
    elif wire is WireKind.GEMINI:
        from google import genai

        options: Any = {"httpx_async_client": transport}
        client = genai.Client(api_key="k", http_options=options).aio
        async for _ in await client.models.generate_content_stream(model="m", contents="x"):
            count += 1
    return count


def cpu_us(work: Callable[[], int], deltas: int) -> float:
    """CPU microseconds a delta, once."""
    began = time.process_time()
    done = work()
    spent = time.process_time() - began
    assert done >= deltas, done
    return spent / deltas * 1e6


def measure(wire: WireKind, deltas: int, rounds: int, *, sdk: bool) -> dict[str, Any]:
    """One adapter; the variants take turns."""
    path, adapter = WIRES[wire]
    model = Model(provider_id="bench", id="m", api_id="m", name="m", wire=wire)
    request = Request(model=model, messages=(User(content=(Text(text="x"),)),))
    frames = FORMATS[path].frames(Reply((Say(WORD * deltas),), delta_characters=len(WORD)), "m")
    stream = b"".join(frames)
    burst = [stream[at : at + 4096] for at in range(0, len(stream), 4096)]
    variants: dict[str, Callable[[], int]] = {
        "ours, one event a chunk": lambda: ours(adapter, request, frames),
        "ours, 4 KiB chunks": lambda: ours(adapter, request, burst),
        "bare msgspec, one event a chunk": lambda: bare(frames, msgspec.json.decode),
        "bare msgspec, 4 KiB chunks": lambda: bare(burst, msgspec.json.decode),
        "bare json, one event a chunk": lambda: bare(frames, json.loads),
    }
    if sdk:
        variants["vendor's SDK, 4 KiB chunks"] = lambda: asyncio.run(vendor(wire, stream))
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, work in variants.items():
            gc.collect()
            times[name].append(cpu_us(work, deltas))
    middle = {name: round(statistics.median(spent), 2) for name, spent in times.items()}
    mine, floor = middle["ours, one event a chunk"], middle["bare msgspec, one event a chunk"]
    figures: dict[str, Any] = {
        "us a delta": middle,
        "ratio to bare msgspec": round(mine / floor, 2),
        "ratio to bare json": round(mine / middle["bare json, one event a chunk"], 2),
        "bar_us": BAR_US,
        "holds": mine <= BAR_US,
    }
    if sdk:
        theirs = middle["vendor's SDK, 4 KiB chunks"]
        figures["vendor's SDK to ours"] = round(theirs / middle["ours, 4 KiB chunks"], 1)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sdk", action="store_true")
    given = parser.parse_args()
    deltas, rounds = (2_000, 3) if given.quick else (DELTAS, ROUNDS)
    figures = {wire.value: measure(wire, deltas, rounds, sdk=given.sdk) for wire in WIRES}
    print(json.dumps({"deltas": deltas, "rounds": rounds, "wires": figures}, indent=2))
    sys.exit(0 if all(wire["holds"] for wire in figures.values()) else 1)


if __name__ == "__main__":
    main()
