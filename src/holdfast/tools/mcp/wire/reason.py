"""How a connection or a request fails, and why in one line."""

import httpx2
import pydantic
from mcp.shared.exceptions import MCPError

from holdfast.errors import ContextError
from holdfast.text import one_line


class Lost(Exception):
    """The connection ended while an answer was waited for."""


class Refused(Exception):
    """The server answered a request with an error."""


class Unclear(Refused):
    """What came is no answer of the protocol: whether the server did what was asked is not known."""


def first(error: BaseException) -> BaseException:
    """Of several errors the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def reason(error: BaseException) -> str:
    """Why a connection could not be made, in one line."""
    if isinstance(error, ContextError | Lost | Refused):
        return str(error)
    if isinstance(error, MCPError):
        return one_line(error.message, 300)
    if isinstance(error, pydantic.ValidationError):
        return "its answer is none of the protocol"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, httpx2.TransportError):
        return f"it cannot be reached ({type(error).__name__})"
    return one_line(f"{type(error).__name__}: {error}", 300)
