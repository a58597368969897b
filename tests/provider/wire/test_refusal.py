"""What the words of a refusal speak of: real ones of the wires, and those that only seem to."""

import json

import pytest

from holdfast.provider.wire import classify, refusal


def spoken(status: int, words: str) -> set[str]:
    """What the words of a provider speak of."""
    body = json.dumps({"error": {"type": "invalid_request_error", "message": words}}).encode()
    return set(refusal.topics(classify.of_response(status, {}, body, provider="acme", now_ms=0)))


@pytest.mark.parametrize(
    ("status", "words", "expected"),
    [
        (400, "Could not process image", {"image"}),
        (400, "messages.0.content.1.image.source.base64.data: it exceeds 8000 pixels", {"image"}),
        (400, "messages.2.content.0.tool_result.content.1.image.source.base64: exceeds 5 MB", {"image"}),
        (400, "Invalid 'messages[3].content[1].image_url.url'. Expected a valid URL.", {"image"}),
        (400, "At most 1 image(s) may be provided in one request.", {"image"}),
        (400, "The image returned by tool 'read_pdf' is not valid", {"image"}),
        (400, "A maximum of 100 PDF pages may be provided.", {"pdf"}),
        (400, "The document has no pages.", {"pdf"}),
        (400, "input_audio is too short", {"audio"}),
        (400, "messages.0.content.0.source.media_type: Input should be 'text/plain'", {"file"}),
        (422, "Invalid base64 data", {"file"}),
        (400, "Timeout while downloading https://example.com/image.png.", {"address"}),
        (400, "Error while downloading file. Upstream status code: 403.", {"address"}),
        (400, "Unable to download image from URL", {"address", "image"}),
        (400, "messages.2.content.0.tool_result: unexpected character", {"result"}),
        (400, "Invalid value for 'input[4].function_call_output.output'", {"result"}),
        (400, "contents[2].parts[0].function_response.response: not valid", {"result"}),
        (400, "Invalid content in 'messages[3]' with role 'tool': not valid UTF-8", {"result"}),
        (400, "Input image may contain content that violates our content policy", {"image"}),
        (400, "The request was blocked by our safety system", set()),
        (404, "No endpoints found that support image input", {"image"}),
        (404, "The model image-1 does not exist; no image for you", set()),
        (500, "image input is not supported - hint: you may need to provide the mmproj", {"image"}),
        (500, "failed to process inputs: image: unknown format", {"image"}),
        (500, "Could not process image", set()),
        (503, "image input is not supported", set()),
        (401, "image input is not supported", set()),
        (400, "Invalid schema for function 'generate_image': object schema missing properties", set()),
        (400, "Invalid schema for function 'image': object schema missing properties", set()),
        (400, "tools.3.custom.name: 'read image' does not match pattern", set()),
        (400, "'temperature' is not supported with this model. See the documentation.", set()),
        (400, "max_tokens: too large, see https://docs.example/images", set()),
        (400, "Invalid 'messages[12].tool_calls[0].id': string too long", set()),
        (400, "messages.4: `tool_use` ids were found without `tool_result` blocks immediately after", set()),
        (400, "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks", set()),
        (400, "messages with role 'tool' must be a response to a message with 'tool_calls'", set()),
        (400, "messages.1.content.0.thinking: invalid `signature` in `thinking` block", set()),
        (400, "Unknown parameter: 'input[3].status'.", set()),
        (400, "Request contains an invalid argument.", set()),
    ],
)
def test_what_a_refusal_speaks_of(status: int, words: str, expected: set[str]) -> None:
    """Where a kind of file is named it is that kind alone; a word inside a name or an address is none."""
    assert spoken(status, words) == expected


@pytest.mark.parametrize(
    ("status", "words", "vague"),
    [
        (400, "Request contains an invalid argument.", True),
        (400, "Multimodal data corrupted", True),
        (422, "Failed to load the input: broken PNG (request id 20261118abc)", True),
        (400, "Could not process image", False),
        (413, "Request too large", False),
        (500, "Request contains an invalid argument.", False),
        (400, "The request was blocked by our safety system", False),
        (400, "Invalid schema for function 'generate_image': object schema missing properties", False),
        (400, "tools.3.custom.name: does not match pattern", False),
        (400, "'temperature' is not supported with this model.", False),
        (400, "max_tokens: too large", False),
        (400, "messages.4: `tool_use` ids were found without `tool_result` blocks", False),
        (400, "messages with role 'tool' must be a response", False),
        (400, "Unknown parameter: input[3].status", False),
        (400, "temperature: too high", False),
    ],
)
def test_a_refusal_that_names_nothing_is_vague(status: int, words: str, vague: bool) -> None:
    """A field, a place or a quotation names something."""
    body = json.dumps({"error": {"type": "invalid_request_error", "message": words}}).encode()
    error = classify.of_response(status, {}, body, provider="my_acme.ai", now_ms=0)

    assert refusal.is_vague(error) is vague


def test_a_request_that_the_server_repeats_is_no_word_of_it() -> None:
    """The message counts, not what stands beside it."""
    echoed = {"messages": [{"content": [{"type": "image_url"}]}]}
    detail = [{"loc": ["body", "temperature"], "msg": "Input should be less than 2", "input": echoed}]
    body = json.dumps({"detail": detail}).encode()

    error = classify.of_response(422, {}, body, provider="acme", now_ms=0)

    assert (str(error), refusal.topics(error)) == (
        "acme: Input should be less than 2 (HTTP 422)",
        frozenset(),
    )
