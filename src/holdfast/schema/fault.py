"""Named errors as records carry them: `{name, data}`. Values, not exceptions; `errors.py` has those."""

from typing import ClassVar, Literal

from holdfast.schema.wire import Count, Wire


class ProviderAuthData(Wire, frozen=True, kw_only=True):
    provider_id: str
    message: str


class UnknownData(Wire, frozen=True, kw_only=True):
    message: str
    ref: str | None = None


class NoData(Wire, frozen=True, kw_only=True):
    """Nothing more is known than the name."""


class MessageData(Wire, frozen=True, kw_only=True):
    message: str


class StructuredOutputData(Wire, frozen=True, kw_only=True):
    message: str
    retries: Count


class ContextOverflowData(Wire, frozen=True, kw_only=True):
    message: str
    response_body: str | None = None


class APIData(Wire, frozen=True, kw_only=True):
    message: str
    status_code: int | None = None
    is_retryable: bool
    response_headers: dict[str, str] | None = None
    response_body: str | None = None
    metadata: dict[str, str] | None = None


class ProviderAuthFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ProviderAuthError"):
    """The provider does not know us: a key is missing or wrong."""

    name: ClassVar[Literal["ProviderAuthError"]] = "ProviderAuthError"
    data: ProviderAuthData


class UnknownFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="UnknownError"):
    """Something else failed; `ref` leads to the log."""

    name: ClassVar[Literal["UnknownError"]] = "UnknownError"
    data: UnknownData


class OutputLengthFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="MessageOutputLengthError"):
    """The model was cut off at its output limit."""

    name: ClassVar[Literal["MessageOutputLengthError"]] = "MessageOutputLengthError"
    data: NoData


class AbortedFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="MessageAbortedError"):
    """The user, or the end of the process, interrupted the message."""

    name: ClassVar[Literal["MessageAbortedError"]] = "MessageAbortedError"
    data: MessageData


class StructuredOutputFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="StructuredOutputError"):
    """The model did not produce the structure that was asked for."""

    name: ClassVar[Literal["StructuredOutputError"]] = "StructuredOutputError"
    data: StructuredOutputData


class ContextOverflowFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ContextOverflowError"):
    """The request was longer than the model's context."""

    name: ClassVar[Literal["ContextOverflowError"]] = "ContextOverflowError"
    data: ContextOverflowData


class ContentFilterFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ContentFilterError"):
    """The provider refused the content."""

    name: ClassVar[Literal["ContentFilterError"]] = "ContentFilterError"
    data: MessageData


class BudgetFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="BudgetExceededError"):
    """The tree of sessions may not spend more. Ours."""

    name: ClassVar[Literal["BudgetExceededError"]] = "BudgetExceededError"
    data: MessageData


class ContextFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ContextUnavailableError"):
    """What the model must be given first cannot be read. Ours."""

    name: ClassVar[Literal["ContextUnavailableError"]] = "ContextUnavailableError"
    data: MessageData


class APIFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="APIError"):
    """The provider's API answered with an error."""

    name: ClassVar[Literal["APIError"]] = "APIError"
    data: APIData


Fault = (
    ProviderAuthFault
    | UnknownFault
    | OutputLengthFault
    | AbortedFault
    | StructuredOutputFault
    | ContextOverflowFault
    | ContentFilterFault
    | BudgetFault
    | ContextFault
    | APIFault
)
