"""Cache marks by provider, and the key that names a session's prefix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.provider.catalog.model import Model, Settings, WireKind
from holdfast.provider.request import cache_marks
from holdfast.provider.request.request import (
    Assistant,
    CacheMarks,
    ProviderMessage,
    Request,
    Results,
    SystemUpdate,
    Text,
    ToolCall,
    ToolResult,
    User,
)
from holdfast.schema.ids import ProjectID, SessionID
from holdfast.schema.session import Session, SessionTime
from tests.provider.history import CLAUDE, GPT

ASK, SAY = User(content=(Text(text="q"),)), Assistant(content=(Text(text="a"),))
CALL = Assistant(content=(ToolCall(id="c", name="read", input={}),))
GOT = Results(content=(ToolResult(id="c", name="read", content=(Text(text="r"),)),))
UPDATE = SystemUpdate(text="s")


def test_the_last_system_block_and_the_last_ends_of_requests_are_marked() -> None:
    """Never more than four. The last system block covers the tools and the texts before it."""
    messages = (ASK, SAY, ASK, CALL, GOT, CALL, GOT, SAY, ASK)
    request = Request(model=CLAUDE, system=("a", "b", "c"), messages=messages, cache_key="k")

    assert cache_marks.marked(request) == replace(request, marks=CacheMarks(system=(2,), messages=(4, 6, 8)))


def test_what_nobody_will_extend_is_not_marked() -> None:
    """A title or a summary has no key; to write it into the cache would cost more than to send it."""
    request = Request(model=CLAUDE, system=("a",), messages=(ASK,))

    assert cache_marks.marked(request) == request
    assert cache_marks.marked(replace(request, cache_key="k")).marks == CacheMarks(system=(0,), messages=(0,))


def test_who_routes_by_the_key_gets_no_marks() -> None:
    """The key alone does it."""
    request = Request(model=GPT, system=("a",), messages=(ASK,), cache_key="k")

    assert cache_marks.marked(request) == request


@pytest.mark.parametrize(
    ("messages", "ends"),
    [
        ((), ()),
        ((ASK,), (0,)),
        ((ASK, UPDATE), (1,)),
        ((ASK, UPDATE, SAY, ASK), (1, 3)),
        ((ASK, CALL, GOT, ASK, UPDATE), (0, 4)),
        ((ASK, SAY, ASK, ASK), (0, 3)),
        ((ASK, SAY, SAY, ASK), (0, 3)),
        ((ASK, SAY, UPDATE, SAY, ASK), (0, 2, 4)),
        ((ASK, SAY), (0, 1)),
    ],
    ids=[
        "nothing",
        "a first request",
        "told something with it",
        "an update stays the end that it was",
        "a person joins while tools work",
        "one that was never answered",
        "two answers in a row",
        "an answer that broke off",
        "a last word of the model's",
    ],
)
def test_a_request_ends_where_an_answer_begins(
    messages: tuple[ProviderMessage, ...], ends: tuple[int, ...]
) -> None:
    """With a person's words, results or an update; what the model said is no end, unless it is the last."""
    request = Request(model=CLAUDE, system=("a",), messages=messages)

    assert cache_marks.marks(request) == CacheMarks(system=(0,), messages=ends)


def test_without_system_texts_there_are_more_marks_for_messages() -> None:
    """An empty text is no block, so it cannot carry one."""
    messages = (ASK, SAY) * 5 + (ASK,)

    assert cache_marks.marks(Request(model=CLAUDE, system=(), messages=messages)).messages == (4, 6, 8, 10)
    assert cache_marks.marks(Request(model=CLAUDE, system=("", ""), messages=messages)).messages == (
        4,
        6,
        8,
        10,
    )
    assert cache_marks.marks(Request(model=CLAUDE, system=("a", ""), messages=messages)) == CacheMarks(
        system=(0,), messages=(6, 8, 10)
    )


@given(st.lists(st.sampled_from([(SAY, ASK), (CALL, GOT), (CALL, GOT, UPDATE), (SAY, ASK, ASK)])))
def test_the_end_of_each_request_is_marked_in_the_next(
    turns: list[tuple[ProviderMessage, ...]],
) -> None:
    """Whatever the model and the person add: the provider finds the entry of the request before exactly."""
    messages: tuple[ProviderMessage, ...] = (ASK,)
    for added in turns:
        before = cache_marks.marks(Request(model=CLAUDE, system=("a",), messages=messages))
        messages += added
        after = cache_marks.marks(Request(model=CLAUDE, system=("a",), messages=messages))

        assert before.messages[-1] in after.messages
        assert after.messages[-1] == len(messages) - 1
        assert len(after.system) + len(after.messages) <= cache_marks.MARKS_MAX


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        (CLAUDE, True),
        (GPT, False),
        (replace(GPT, npm="@openrouter/ai-sdk-provider", id="anthropic/claude-sonnet"), True),
        (replace(GPT, npm="@openrouter/ai-sdk-provider", id="meta/llama"), False),
        (replace(GPT, npm="@ai-sdk/alibaba", id="qwen"), True),
        (replace(CLAUDE, wire=WireKind.OPENAI_CHAT, npm="@ai-sdk/gateway"), False),
        (replace(CLAUDE, wire=WireKind.BEDROCK, id="anthropic.claude"), True),
        (replace(GPT, wire=WireKind.BEDROCK, id="amazon.titan"), False),
        (replace(GPT, wire=WireKind.GEMINI, id="gemini"), False),
        (replace(GPT, wire=WireKind.OPENAI_RESPONSES), False),
        (replace(CLAUDE, settings=Settings(options={"cache_control": {"type": "ephemeral"}})), False),
    ],
)
def test_who_caches_what_is_marked(model: Model, takes: bool) -> None:
    """Anthropic's models on any wire, and packages that speak like it; not who marks by himself."""
    assert cache_marks.takes_marks(model) is takes


def _session(fork: object = None) -> Session:
    return Session(
        id=SessionID("ses_000000000001AAAAAAAAAAAAAA"),
        slug="s",
        project_id=ProjectID("p"),
        directory="/w",
        title="t",
        version="1",
        time=SessionTime(created=1, updated=1),
        metadata=None if fork is None else {"fork": fork},
    )


@pytest.mark.parametrize(
    ("session", "compacted", "key"),
    [
        (_session(), False, "ses_000000000001AAAAAAAAAAAAAA"),
        (_session({"sessionID": "ses_source"}), False, "ses_source"),
        (_session({"sessionID": "ses_source"}), True, "ses_000000000001AAAAAAAAAAAAAA"),
        (_session({"sessionID": "ses_source", "cacheKey": "ses_first"}), False, "ses_first"),
        (_session({"sessionID": 7}), False, "ses_000000000001AAAAAAAAAAAAAA"),
        (_session("odd"), False, "ses_000000000001AAAAAAAAAAAAAA"),
    ],
)
def test_a_fork_shares_its_sources_key_until_it_is_compacted(
    session: Session, compacted: bool, key: str
) -> None:
    """Their prefixes are the same until then, so the provider's cache serves both."""
    assert cache_marks.cache_key(session, compacted=compacted) == key
