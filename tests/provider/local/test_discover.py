"""Servers that already run, seen with stand-ins: real HTTP on loopback, at ports of their own."""

import os
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.net.stream import Http
from holdfast.provider.accounts.resolve import Providers
from holdfast.provider.local import answers, discover, listeners
from holdfast.provider.local.discover import Found, FoundModel, ServerKind
from holdfast.testing.mock_provider import MockProvider, Raw, Trouble

JSON = {"content-type": "application/json"}
UID = os.getuid()

SAYS: dict[ServerKind, tuple[bytes, tuple[FoundModel, ...]]] = {
    "ollama": (
        b'{"models":[{"name":"qwen3:8b","size":5},{"name":"nomic-embed-text:latest"}]}',
        (FoundModel(id="qwen3:8b"),),
    ),
    "lmstudio": (
        b"""{"object":"list","data":[{"id":"e5","type":"embeddings"},{"id":"gemma-3","type":"vlm",
        "state":"loaded","max_context_length":131072,"loaded_context_length":4096}]}""",
        (FoundModel(id="gemma-3", context=4096),),
    ),
    "llamacpp": (
        b"""{"object":"list","data":[{"id":"m.gguf","owned_by":"llamacpp",
        "meta":{"n_ctx":8192,"n_ctx_train":32768,"ftype":"Q4"}}]}""",
        (FoundModel(id="m.gguf", context=8192),),
    ),
    "vllm": (
        b'{"object":"list","data":[{"id":"org/m","owned_by":"vllm","max_model_len":16384}]}',
        (FoundModel(id="org/m", context=16384),),
    ),
}
FOUND = Found(kind="vllm", port=8000, models=(FoundModel(id="org/m", context=16384),))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than a person would wait."""
    monkeypatch.setattr(discover, "ASK_MS", 30_000)


async def look(kind: ServerKind, mock: MockProvider, **arguments: object) -> tuple[Found, ...]:
    http = Http()
    port = int(mock.url.rpartition(":")[2])
    try:
        found = await discover.find(http, ports={kind: port}, **{"uid": UID, **arguments})  # type: ignore[arg-type]
        return tuple(replace(one, port=1) for one in found)
    finally:
        await http.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        Raw((b"<html>hello</html>",), 200, {"content-type": "text/html"}),
        Raw((b'{"models":"none"}',), 200, JSON),
        Raw((b'{"models":[]',), 200, JSON),
        Raw((b'{"models":[]}',), 404, JSON),
        Raw((b'{"models":[{"name":"' + b"x" * 300_000 + b'"}]}',), 200, JSON),
        Raw((), 302, {"location": "/api/tags"}),
        Trouble("no-answer"),
        Trouble("cut"),
    ],
    ids=["html", "shape", "cut-json", "status", "large", "redirect", "silent", "cut"],
)
async def test_what_is_no_such_server_is_left_out(answer: Raw | Trouble) -> None:
    """Whatever else listens on a usual port, and however it behaves, is passed over in bounded time."""
    async with MockProvider() as mock:
        mock.play(answer)

        assert await look("ollama", mock) == ()


async def test_another_users_server_is_not_even_asked() -> None:
    """Where another user's process listens, or nobody can tell, no byte is sent."""
    async with MockProvider() as mock:
        stranger = await look("ollama", mock, uid=UID + 1)
        both = await look("ollama", mock, owners=lambda _: frozenset({UID, UID + 1}))
        unknown = await look("ollama", mock, owners=lambda _: None)

        assert mock.requests == []
    theirs = "another user's process listens there"
    assert stranger == both == (Found(kind="ollama", port=1, problem=theirs),)
    assert unknown == (Found(kind="ollama", port=1, problem="this system does not say whose process it is"),)


async def test_nothing_listens() -> None:
    """A closed port is nothing."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody else gets the port, and it does not listen
        http = Http()
        found = await discover.find(http, uid=UID, ports={"ollama": held.getsockname()[1]})
        await http.aclose()

    assert found == ()


@pytest.mark.parametrize("kind", list(SAYS))
async def test_a_server_is_known_by_its_own_answer(kind: ServerKind) -> None:
    """Each kind is asked on its own path and gives its models, with the context that it really serves."""
    body, models = SAYS[kind]
    async with MockProvider() as mock:
        mock.play(Raw((body,), 200, JSON))

        assert await look(kind, mock) == (Found(kind=kind, port=1, models=models),)
        assert [request.path for request in mock.requests] == [discover.PATHS[kind]]


async def test_a_server_without_a_model_is_shown_and_not_offered() -> None:
    """It runs, and there is nothing to talk to yet."""
    async with MockProvider() as mock:
        mock.play(Raw((b'{"models":[]}',), 200, JSON))

        assert await look("ollama", mock) == (Found(kind="ollama", port=1, problem="it has no model yet"),)


def test_a_list_of_models_is_bounded_and_clean() -> None:
    """Names that a terminal would obey, endless ones and too many are dropped."""
    names = ["\\u001b[2J", "x" * 201, *(f"m{number}" for number in range(300))]
    body = '{"models":[' + ",".join(f'{{"name":"{name}"}}' for name in names) + "]}"

    found = discover.identify("ollama", body.encode())

    assert found == tuple(FoundModel(id=f"m{number}") for number in range(100))


def test_the_one_that_serves_the_other_kind_is_not_mistaken() -> None:
    """llama.cpp and vLLM share a path; who owns the models tells them apart."""
    assert discover.identify("llamacpp", SAYS["vllm"][0]) is None
    assert discover.identify("vllm", SAYS["llamacpp"][0]) is None


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2
   2: 0100007F:1F40 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 3
   3: 0200000A:04D2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4
   4: 00000000000000000000000000000000:04D2 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1001 0 5
   5: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 6
"""


def test_the_kernels_table_is_read() -> None:
    """Listeners that 127.0.0.1 reaches count, of every user; connections and other addresses do not."""
    lines = TABLE.splitlines()
    ports = (11434, 8080, 8000, 1234, 1)

    assert [sorted(listeners.owners_in(lines, port)) for port in ports] == [[1000], [0, 1000], [], [1001], []]


def test_offers_are_for_a_person_who_has_nothing_yet() -> None:
    """Asked once, never without somebody there, never beside a configured provider, never for a problem."""
    found = (FOUND, replace(FOUND, kind="ollama", problem="another user's process listens there"))

    def offers(
        *, answered: tuple[str, ...] = (), configured: bool = False, interactive: bool = True
    ) -> object:
        return discover.offers(found, answered=answered, configured=configured, interactive=interactive)

    assert offers() == (FOUND,)
    assert offers(answered=("vllm:8000",)) == ()
    assert offers(configured=True) == ()
    assert offers(interactive=False) == ()


def test_answers_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes makes a provider of the server while it runs, a no is kept too; a damaged file is no answer."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    other = replace(FOUND, kind="llamacpp", port=8080)
    assert answers.read() == {}

    answers.remember(FOUND, accepted=True)
    answers.remember(other, accepted=False)

    assert answers.read() == {"vllm:8000": True, "llamacpp:8080": False}
    assert answers.accepted((FOUND, other), answers.read()) == {"vllm": discover.entry(FOUND)}
    assert answers.file().stat().st_mode & 0o777 == 0o600
    answers.file().write_bytes(b"[1")
    assert answers.read() == {}


def test_an_accepted_server_can_be_used() -> None:
    """Its entry makes a provider that needs no key, with its models and their context."""
    them = Providers((), entries={"vllm": discover.entry(FOUND)})

    model = them.default_model(None)
    assert (model.provider_id, model.id, model.limit.context) == ("vllm", "org/m", 16384)
    assert them.endpoint(model).base_url == "http://127.0.0.1:8000/v1"
