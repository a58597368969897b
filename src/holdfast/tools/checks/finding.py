"""What a check found, in words for the model. Pure."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from holdfast.schema.wire import JsonMap

CHARS_MAX: Final = 6_000
"""Of one check's output; the beginning and the end are kept."""

Outcome = Literal["passed", "found", "late", "missing", "interrupted"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check, run. `exit` is None where it did not end by itself."""

    name: str
    outcome: Outcome
    exit: int | None = None
    output: str = ""


def words(findings: Sequence[Finding]) -> str:
    """All findings; empty where nothing was run."""
    passed = [each.name for each in findings if each.outcome == "passed"]
    said = [f"Checks passed: {', '.join(passed)}."] if passed else []
    said += [_words(each) for each in findings if each.outcome != "passed"]
    return "\n\n".join(said)


def _words(finding: Finding) -> str:
    name, output = finding.name, shortened(finding.output.strip())
    match finding.outcome:
        case "found":
            return f"The check {name} found (exit code {finding.exit}):\n{output or '(no output)'}"
        case "late":
            return f"The check {name} took too long and was ended.{_after(output)}"
        case "missing":
            return f"The check {name} could not be run: {output}"
        case _:
            return f"The check {name} was interrupted."


def _after(output: str) -> str:
    return f" It had said:\n{output}" if output else ""


def metadata(findings: Sequence[Finding]) -> JsonMap:
    """The same for programs."""
    return {
        "checks": [
            {"name": each.name, "outcome": each.outcome, "exit": each.exit, "output": shortened(each.output)}
            for each in findings
        ]
    }


def shortened(text: str) -> str:
    """A text without its middle, if it is too long."""
    if len(text) <= CHARS_MAX:
        return text
    half = CHARS_MAX // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
