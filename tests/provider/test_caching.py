"""Cache marks by provider, and the key that names a session's prefix."""

import pytest
from msgspec.structs import replace

from holdfast.provider import caching
from holdfast.provider.catalog.model import Model, Settings, WireKind
from holdfast.provider.request import Assistant, CacheMarks, Request, SystemUpdate, Text, User
from holdfast.schema.ids import SessionID
from holdfast.schema.session import Session, SessionTime
from tests.provider.history import CLAUDE, GPT

ASK, SAY = User(content=(Text(text="q"),)), Assistant(content=(Text(text="a"),))


def test_the_first_two_system_blocks_and_the_last_two_messages_are_marked() -> None:
    """Never more than four; an update of the System Context is no message of the conversation."""
    request = Request(model=CLAUDE, system=("a", "b", "c"), messages=(ASK, SAY, ASK, SystemUpdate(text="s")))

    assert caching.marked(request) == replace(request, marks=CacheMarks(system=(0, 1), messages=(1, 2)))


def test_a_short_request_has_fewer_marks() -> None:
    """There may be no system text and one message."""
    request = Request(model=CLAUDE, messages=(ASK,))

    assert caching.marks(request) == CacheMarks(messages=(0,))


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
    assert caching.takes_marks(model) is takes


def _session(fork: object = None) -> Session:
    return Session(
        id=SessionID("ses_000000000001AAAAAAAAAAAAAA"),
        slug="s",
        project_id="p",
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
    assert caching.cache_key(session, compacted=compacted) == key
