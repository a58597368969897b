"""What tests about wiring share."""

from holdfast.provider.request.request import Request, Results


def outputs(request: Request) -> list[str]:
    """What the model is shown of its calls."""
    return [
        "".join(getattr(block, "text", "") for block in result.content)
        for message in request.messages
        if isinstance(message, Results)
        for result in message.content
    ]
