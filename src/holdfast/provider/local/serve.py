"""The process that holds a local model: llama.cpp's own server on 127.0.0.1, and nothing else.

    python -P -m holdfast.provider.local.serve

One line of JSON comes in (`Order`), one goes out (`Ready` or `Broken`), then it serves until its standard
input ends: when the process that started it ends, however, so does it. The key comes by the pipe because
the list of processes shows arguments to every user. It speaks /v1/chat/completions, /v1/messages and
/v1/responses, and refuses who does not know the key.
"""

import os
import sys
from importlib import import_module
from urllib.parse import urlsplit

import msgspec

from holdfast.schema import typed

HTTP_THREADS = 4
THREADS_MAX = 8


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to serve."""

    path: str
    alias: str
    context: int
    output: int
    key: str

    def __repr__(self) -> str:
        return f"Order({self.alias!r})"


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """It listens."""

    port: int


class Broken(msgspec.Struct, frozen=True, kw_only=True, tag="broken"):
    """It cannot serve; `extra` when the optional extra is what is missing."""

    why: str
    extra: bool = False


def main() -> None:
    """Serve until standard input ends."""
    # The answer goes out by a descriptor of its own: a library that prints cannot spoil it.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    order = typed.decode(sys.stdin.buffer.readline(), Order)
    server, report = start(order)
    answers.write(msgspec.json.encode(report) + b"\n")
    answers.close()
    if server is not None:
        while sys.stdin.buffer.read(4096):
            pass
    # No farewell: the threads of the server hold nothing that must be saved.
    os._exit(0 if server is not None else 1)


def start(order: Order) -> tuple[object | None, Ready | Broken]:
    """The server, which runs in threads of its own, and what to report of it."""
    try:
        xllamacpp = import_module("xllamacpp")  # it has no types, and need not be there
    except ImportError as error:
        return None, Broken(why=str(error), extra=True)
    params = xllamacpp.CommonParams()
    params.model.path = order.path
    params.model_alias = {order.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order.key]
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.n_threads_http = HTTP_THREADS
    params.n_ctx = order.context
    params.n_predict = order.output
    params.n_parallel = 1  # sessions take turns: each more would cost the memory of a whole context
    params.cache_ram_mib = 0  # else it keeps up to 8 GiB of earlier prompts
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    params.warmup = False
    params.verbosity = 0
    try:
        server = xllamacpp.Server(params)
        return server, Ready(port=urlsplit(server.listening_address).port or 0)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be reported to the parent
        return None, Broken(why=str(error) or type(error).__name__)


def threads() -> int:
    """One core is left to others: threads that wait for one another crawl when something else is busy."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(THREADS_MAX, max(1, usable - 1))


if __name__ == "__main__":
    main()
