"""Endpoints: addresses, keys, headers and time-outs out of options."""

from typing import Any

import pytest

from holdfast.errors import InvalidInput
from holdfast.provider.accounts import endpoint
from holdfast.provider.accounts.secret import Secret
from holdfast.provider.wire.wire import Endpoint

COMPATIBLE = "@ai-sdk/openai-compatible"


def address(npm: str = COMPATIBLE, **more: Any) -> str:
    given: dict[str, Any] = {"options": {}, "env": {}, "model": None, "provider": None} | more
    return endpoint.address("p", npm, **given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "provider p has no address; set options.baseURL"),
        ({"options": {"baseURL": 5}}, "options.baseURL must be a text"),
        ({"provider": "https://${A}/${B}", "env": {"A": ""}}, "provider p needs A and B in the environment"),
        ({"provider": "ftp://x"}, "must begin with https:// or http://"),
        ({"npm": "@ai-sdk/azure"}, "needs AZURE_RESOURCE_NAME in the environment"),
    ],
)
def test_what_an_address_lacks_is_named(given: dict[str, Any], told: str) -> None:
    """One line that says what to set."""
    with pytest.raises(InvalidInput, match=told):
        address(**given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"npm": "@ai-sdk/anthropic"}, "https://api.anthropic.com/v1"),
        ({"npm": "@ai-sdk/openai", "provider": "https://b.example/"}, "https://b.example"),
        ({"provider": "https://b.example", "model": "https://c.example"}, "https://c.example"),
        ({"options": {"baseURL": "http://d:1/v1/"}, "model": "https://c.example"}, "http://d:1/v1"),
        ({"provider": "https://x.example/v1/chat/completions"}, "https://x.example/v1"),
        ({"provider": "https://${A}.example/${B}", "env": {"A": "a", "B": "b"}}, "https://a.example/b"),
        (
            {"npm": "@ai-sdk/azure", "options": {"resourceName": "mine"}},
            "https://mine.openai.azure.com/openai/v1",
        ),
    ],
)
def test_the_nearest_address_counts(given: dict[str, Any], expected: str) -> None:
    """Options, then the model's, the provider's, the package's; variables filled, the wire's path cut off."""
    assert address(**given) == expected


def make(options: dict[str, Any], npm: str = COMPATIBLE) -> Endpoint:
    return endpoint.make("p", npm, options, "https://x", Secret("sk"))


def test_options_set_the_endpoint() -> None:
    """Time-outs in milliseconds, `false` for none; headers and the version of the API."""
    options = {
        "timeout": False,
        "headerTimeout": 10,
        "chunkTimeout": 20,
        "headers": {"a": "b"},
        "apiVersion": "v1",
    }
    assert make(options) == Endpoint(
        base_url="https://x",
        key="sk",
        headers={"a": "b"},
        query={"api-version": "v1"},
        header_timeout_ms=10,
        stall_timeout_ms=20,
        total_timeout_ms=None,
    )
    assert make({}) == Endpoint(base_url="https://x", key="sk")


def test_azure_takes_the_key_in_a_header_of_its_own() -> None:
    """`Authorization` is for other tokens there."""
    assert make({}, "@ai-sdk/azure") == Endpoint(base_url="https://x", headers={"api-key": "sk"})


@pytest.mark.parametrize("value", [0, -1, True, "10", 1.5])
def test_a_wrong_time_out_is_an_error(value: object) -> None:
    """`true` is no time."""
    with pytest.raises(InvalidInput, match=r"options\.timeout must be milliseconds, or false for none"):
        make({"timeout": value})


def test_wrong_headers_are_an_error_that_shows_no_value() -> None:
    """A header may carry a key."""
    with pytest.raises(InvalidInput, match=r"options\.headers must be texts by name") as caught:
        make({"headers": {"authorization": ["sk-secret"]}})
    assert "sk-secret" not in str(caught.value)
