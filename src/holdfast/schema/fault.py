"""Named errors as records carry them: `{name, data}`. Values, not exceptions; `errors.py` has those."""

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

    data: ProviderAuthData


class UnknownFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="UnknownError"):
    """Something else failed; `ref` leads to the log."""

    data: UnknownData


class OutputLengthFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="MessageOutputLengthError"):
    """The model was cut off at its output limit."""

    data: NoData


class AbortedFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="MessageAbortedError"):
    """The user, or the end of the process, interrupted the message."""

    data: MessageData


class StructuredOutputFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="StructuredOutputError"):
    """The model did not produce the structure that was asked for."""

    data: StructuredOutputData


class ContextOverflowFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ContextOverflowError"):
    """The request was longer than the model's context."""

    data: ContextOverflowData


class ContentFilterFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ContentFilterError"):
    """The provider refused the content."""

    data: MessageData


class BudgetFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="BudgetExceededError"):
    """The tree of sessions may not spend more. Ours."""

    data: MessageData


class ContextFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="ContextUnavailableError"):
    """What the model must be given first cannot be read. Ours."""

    data: MessageData


class APIFault(Wire, frozen=True, kw_only=True, tag_field="name", tag="APIError"):
    """The provider's API answered with an error."""

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
