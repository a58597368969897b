"""What failures mean: tables of what providers say, and when they want to be asked again."""

import msgspec
import pytest

from holdfast.errors import ProviderError
from holdfast.provider.wire import classify
from holdfast.provider.wire.redact import MARK, Redactor, of_request
from holdfast.provider.wire.retry_after import WAIT_MS_MAX, retry_after_ms

NOW_MS = 1_800_000_000_000  # Fri, 15 Jan 2027 08:00:00 GMT


def said(message: str = "", type: str = "", code: str = "") -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": type, "code": code}})


RESPONSES = [
    (401, said("invalid x-api-key", "authentication_error"), "auth", False),
    (403, said("Your key may not use this model"), "auth", False),
    (400, said("API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"), "auth", False),
    (402, b"", "quota", False),
    (429, said("slow down"), "rate-limit", True),
    (429, said("You exceeded your current quota", code="insufficient_quota"), "quota", False),
    (429, said("Rate limit: too many tokens per minute in context window"), "rate-limit", True),
    (429, said("The engine is currently overloaded"), "overloaded", True),
    (400, said("Your credit balance is too low to access the API"), "quota", False),
    (400, said("prompt is too long: 210000 tokens > 200000 maximum"), "context-overflow", False),
    (400, said("x", code="context_length_exceeded"), "context-overflow", False),
    (400, said("This model's maximum context length is 8192 tokens."), "context-overflow", False),
    (
        400,
        said("Input token count (1048577) exceeds the maximum number of tokens"),
        "context-overflow",
        False,
    ),
    (400, said("Please reduce the length of the messages or completion."), "context-overflow", False),
    (400, said("the request exceeds the available context size"), "context-overflow", False),
    (400, said("Input is too long for requested model."), "context-overflow", False),
    (400, said("prompt has 9,000 tokens, but the limit is 8,192"), "context-overflow", False),
    (413, b"", "context-overflow", False),
    (413, said("Request too large", "request_too_large"), "context-overflow", False),
    (400, b"", "context-overflow", False),
    (400, said("tools.0.name: String should match pattern"), "other", False),
    (400, said("The response was filtered", code="content_filter"), "content-filter", False),
    (400, said("flagged", code="invalid_prompt"), "content-filter", False),
    (404, said("no such model"), "other", False),
    (408, b"", "timeout", True),
    (409, b"", "other", True),
    (500, b"", "other", True),
    (500, said("prompt is too long"), "context-overflow", False),
    (502, b"<html><body>Bad Gateway</body></html>", "other", True),
    (503, b"", "overloaded", True),
    (504, b"", "timeout", True),
    (524, b"", "timeout", True),
    (529, said("Overloaded", "overloaded_error"), "overloaded", True),
    (200, said("Internal server error", "api_error"), "other", True),
    (307, b"", "other", False),
    (418, b"\xff\xfe", "other", False),
    (400, b'["odd", {"shape": 1}]', "other", False),
    (
        400,
        said(
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a maximum of 40",
            code="string_above_max_length",
        ),
        "other",
        False,
    ),
    (
        400,
        said("Invalid 'messages[2].content': string too long.", code="string_above_max_length"),
        "context-overflow",
        False,
    ),
    (400, said("invalid tool name: dns_lookup"), "other", False),
    (400, said("Unknown parameter: 'exhausted'."), "other", False),
    (400, said("Could not process image: timed out fetching url"), "other", False),
    (422, said("tool 'unavailable' not found"), "other", False),
    (400, said("unknown tool: rate_limit_check"), "other", False),
    (400, said("Rate limit has been exceeded"), "rate-limit", True),
    (400, said("ThrottlingException"), "rate-limit", True),
]


@pytest.mark.parametrize(("status", "body", "kind", "retryable"), RESPONSES)
def test_responses(status: int, body: bytes, kind: str, retryable: bool) -> None:
    """Status, codes and wording, each where it says most; in one line that names the provider."""
    error = classify.of_response(status, {}, body, provider="acme", now_ms=NOW_MS)

    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert str(error).startswith("acme: ")
    assert "\n" not in str(error)


def test_a_404_of_openai_may_pass() -> None:
    """OpenAI answers 404 for models that exist, now and then."""
    error = classify.of_response(404, {}, b"", provider="openai", now_ms=NOW_MS)

    assert error.retryable


STREAMED = [
    ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", True),
    ({"error": {"code": "context_length_exceeded", "message": "x"}}, "context-overflow", False),
    ({"type": "error", "error": {"code": "insufficient_quota"}}, "quota", False),
    ({"type": "error", "error": {"code": "usage_not_included"}}, "quota", False),
    ({"type": "error", "error": {"code": "invalid_prompt"}}, "content-filter", False),
    ({"type": "error", "error": {"code": "server_error"}}, "other", True),
    ({"type": "error", "error": {"code": "server_is_overloaded"}}, "overloaded", True),
    ({"code": 429, "message": "slow"}, "rate-limit", True),
    ({"code": 502, "message": "upstream"}, "other", True),
    ({"message": "Connection reset by peer"}, "connection", True),
    ("Too Many Requests", "rate-limit", True),
    ("request timed out", "timeout", True),
    ("please try again", "other", True),
    ("nonsense", "other", False),
    (None, "other", False),
]


@pytest.mark.parametrize(("error", "kind", "retryable"), STREAMED)
def test_errors_inside_a_stream(error: object, kind: str, retryable: bool) -> None:
    """The same rules, without a status unless the error states one."""
    found = classify.of_object(error, provider="acme")

    assert (found.kind, found.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("headers", "ms"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2_000),
        ({"retry-after": "0.0015"}, 2),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "12.5", "retry-after": "9"}, 13),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9_000),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30_000),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30"}, 30_000),
        ({"retry-after": "Fri, 99 Jan 2027 08:00:30 GMT"}, None),
        ({"retry-after": "1e306"}, WAIT_MS_MAX),
        ({"retry-after-ms": "1e300"}, WAIT_MS_MAX),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, WAIT_MS_MAX),
    ],
)
def test_when_to_ask_again(headers: dict[str, str], ms: int | None) -> None:
    """Seconds, a date and milliseconds; what is none of them says nothing."""
    assert retry_after_ms(headers, NOW_MS) == ms


def test_a_delay_in_the_body_counts_when_no_header_says_one() -> None:
    """Google's services put it there."""
    body = '{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}'

    assert retry_after_ms({}, NOW_MS, body_text=body) == 3_500
    assert retry_after_ms({"retry-after": "1"}, NOW_MS, body_text=body) == 1_000
    assert retry_after_ms({}, NOW_MS, body_text='{"retryDelay":"soon"}') is None


SECRET = 'sk-a"b/c+d=0123456789'


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"key {SECRET}, again {SECRET}",
        msgspec.json.encode({"x": SECRET}).decode(),
        "sk-a%22b%2Fc%2Bd%3D0123456789",
        f"https://h/x?key={SECRET}&y=1",
        f"Authorization: Bearer {SECRET}",
    ],
)
def test_a_secret_goes_in_every_form(text: str) -> None:
    """Plain, escaped as JSON, percent-encoded, in a query and in a header."""
    shown = Redactor([SECRET]).text(text)

    assert "0123456789" not in shown
    assert MARK in shown


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abcdefghij.klm",
        "?key=AbCd1234",
        "x-api-key: abcdef",
        '{"Authorization": "abcdef"}',
        "sk-proj-abcdefghijklmnopqrstuvwx",
        "AIzaSyA1234567890abcdefghijk",
    ],
)
def test_what_looks_like_a_credential_goes_too(text: str) -> None:
    """Secrets of others, which we do not know, are told by their look."""
    assert MARK in Redactor([]).text(text)


def test_plain_words_stay() -> None:
    """Ordinary text is left alone, and so is a `key` too short to be one."""
    text = "The key is missing; set it. Basic tokens: 12 of 200. task-force"

    assert Redactor(["no", ""]).text(text) == text


def test_the_secrets_of_a_request_are_found() -> None:
    """The key, secret headers whatever their case, and secret parameters of the query; limits are kept."""
    redactor = of_request(
        "key-one-1", "https://h/x?api_key=key-two-2&z=plain", {"X-Auth": "Bearer key-three-3"}
    )
    error = ProviderError(
        "key-one-1 key-two-2 key-three-3 plain\nmore", headers={"x-token": "a", "ratelimit-tokens": "9"}
    )

    shown = redactor.error(error)

    assert str(shown) == f"{MARK} {MARK} {MARK} plain more"
    assert shown.headers == {"x-token": MARK, "ratelimit-tokens": "9"}


@pytest.mark.parametrize("ahead", range(340, 440, 9))
def test_a_secret_at_the_end_of_what_is_shown_goes_whole(ahead: int) -> None:
    """A long message is shortened after its secrets are out, so the cut leaves no half of one."""
    secret = "3f9a0c7be1d24d55a8876b1f0e2c4d91"
    other = "sk-abcdefghijklmnopqrstuvwxyz012345"
    body = said(f"{'x ' * (ahead // 2)}{secret} {other} is wrong; {'y ' * 400}", code="invalid_api_key")
    error = classify.of_response(401, {}, body, provider="acme", now_ms=NOW_MS)

    shown = str(of_request(secret, "https://h/", {}).error(error))

    assert secret[:4] not in shown
    assert other[:5] not in shown
    assert len(shown) < 600
    assert shown.endswith("… (HTTP 401); log in again (`holdfast providers login`) or choose another model")


def test_a_password_in_an_address_is_a_secret() -> None:
    """As it stands there, as it is meant, and as it travels in a header."""
    redactor = of_request(None, "https://me:pass%2Fword@h/x", {})

    assert redactor.text("pass%2Fword pass/word bWU6cGFzcy93b3Jk") == f"{MARK} {MARK} {MARK}"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<html><p>No  such <b>model</b>.</p></html>", "No such model ."),
        ("<SCRIPT>let a = '<b>';</SCRIPT>Busy<style>p {}</style>.", "Busy ."),
        ("<script>if (a < b) {}</script>Busy", "Busy"),
        ("a < b, and that is all", "a < b, and that is all"),
        ("Busy<script>never closed <p>", "Busy"),
        ("<" * 65_536, " ".join(["<"] * 65_536)),
    ],
    ids=["markup", "silent", "less than in a script", "no markup", "unclosed", "only brackets"],
)
def test_a_page_in_the_place_of_an_error_is_read_as_text(page: str, words: str) -> None:
    """Markup and scripts go, words stay; one look at each character, however odd the page is."""
    assert classify._plain(page) == words
