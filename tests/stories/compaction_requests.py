"""What tests about compaction requests share."""

from holdfast.testing.mock_provider.script import Call, Usage
from holdfast.testing.scripted_provider import Step

TASK = "Port the frobnicator to Rust: 14 functions."


LITTLE = Usage(input=10, output=5)


def acts(number: int, usage: Usage = LITTLE) -> Step:
    """The model calls the tool."""
    return Step(Call("act", {"what": str(number)}, id=f"c{number}"), usage=usage)


def requests(said: list[str]) -> list[str]:
    """The requests that are carried over."""
    return [each.split("</request>")[0].split("<request>\n")[1] for each in said if "<request>" in each]
