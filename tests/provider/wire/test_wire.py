"""What the values of the port show of themselves."""

import pytest

from holdfast.provider.wire.wire import Endpoint, HttpRequest

URL = "https://user:topsecret@h.example:8443/v1?key=topsecret#topsecret"


@pytest.mark.parametrize(
    "value",
    [Endpoint(base_url=URL, key="topsecret"), HttpRequest(url=URL, headers={"a": "topsecret"}, body=b"")],
)
def test_no_secret_in_a_repr(value: Endpoint | HttpRequest) -> None:
    """Neither a key nor what an address holds of one is shown, in plain or in rich form."""
    shown = f"{value!r} {value} {value.__rich_repr__()}"

    assert "topsecret" not in shown
    assert "https://h.example:8443/v1" in shown


def test_an_address_that_cannot_be_read_is_not_shown() -> None:
    """It may be anything, a key too."""
    assert "topsecret" not in repr(Endpoint(base_url="https://[topsecret"))
