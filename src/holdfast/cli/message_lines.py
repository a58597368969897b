"""What users read of a message beside its text: how it ended, what its calls answered, what it cost. Pure.

Works on stored JSON, so that a message of any version can be shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

Fields = Mapping[str, Any]

LENGTH = "length"


def of_part(part: Fields) -> list[str]:
    """The lines of a part: text as it is, everything else behind a dot."""
    match part:
        case {"type": "text", "text": str(text)} if not part.get("synthetic"):
            return text.splitlines()
        case {"type": "tool", "tool": tool, "state": {"status": status, "input": inputs} as state}:
            line = f"  · {tool} [{_outcome(state)}] {msgspec.json.encode(inputs).decode()}"
            return [line, *_failure(state)] if status == "error" else [line]
        case {"type": "file"}:
            refused = " (left out: the provider refused it)" if part.get("refused") else ""
            return [f"  · file {part.get('filename') or part.get('mime')}{refused}"]
        case {"type": "patch", "files": [*files]}:
            return [f"  · changed {', '.join(map(str, files))}"]
        case {"type": "subtask", "description": description}:
            return [f"  · subtask {description}"]
        case {"type": "compaction"}:
            return ["  · compaction"]
        case {"type": "retry", "error": dict(error)}:
            return [f"  … asked again after {fault(error)}"]
        case _:
            return []


def _outcome(state: Fields) -> str:
    """`failed`, `denied`, `interrupted` or `unknown` for a call that did not succeed."""
    metadata = state.get("metadata")
    outcome = metadata.get("outcome") if isinstance(metadata, dict) else None
    return str(outcome or state["status"]) if state["status"] == "error" else str(state["status"])


def _failure(state: Fields) -> list[str]:
    first = next(iter(str(state.get("error") or "").splitlines()), "")
    return [f"    ✗ {first}"] if first else []


def ending(info: Fields, parts: Sequence[Fields]) -> str | None:
    """How an answer ended, where it did not end well."""
    error = info.get("error")
    if isinstance(error, dict):
        return f"✗ {fault(error)}"
    if info.get("finish") == LENGTH:
        return cut_off(output_tokens(info, parts))
    return None


def cut_off(tokens: float) -> str:
    """An answer that was too long for its model."""
    return f"✗ cut off at the output limit ({tokens:,.0f} tokens)"


def output_tokens(info: Fields, parts: Sequence[Fields]) -> float:
    """How many tokens the answer has, thinking included."""
    return sum(_number(tokens, name) for tokens in _counts(info, parts) for name in ("output", "reasoning"))


def fault(error: Fields) -> str:
    """An error by its name and in its words; the status of the provider's answer where there was one."""
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    message, status = str(data.get("message") or ""), data.get("statusCode")
    status_text = f" (HTTP {status})" if status and f"HTTP {status}" not in message else ""
    return f"{error.get('name') or 'error'}{': ' if message else ''}{message}{status_text}"


def usage(info: Fields, parts: Sequence[Fields]) -> str | None:
    """Who answered, with how many tokens and at what cost; nothing for what is no answer."""
    if info.get("role") != "assistant":
        return None
    counts = list(_counts(info, parts))
    who = f"{info.get('providerID')}/{info.get('modelID')}"
    if not counts:
        return who
    read = sum(_number(tokens.get("cache"), "read") for tokens in counts)
    written = sum(_number(tokens.get("cache"), "write") for tokens in counts)
    sent = sum(_number(tokens, "input") for tokens in counts) + read + written
    steps = [part for part in parts if part.get("type") == "step-finish"]
    cost = sum(_number(step, "cost") for step in steps) if steps else _number(info, "cost")
    known = not any(step.get("costKnown") is False for step in steps)
    cached = f" ({read:,.0f} cached)" if read else ""
    out = output_tokens(info, parts)
    return f"{who} · {sent:,.0f} tokens in{cached} · {out:,.0f} out · {money(cost, known=known)}"


def _counts(info: Fields, parts: Sequence[Fields]) -> Iterable[Fields]:
    """What each step used; of a message without steps, its own count."""
    steps = [part["tokens"] for part in parts if part.get("type") == "step-finish" and "tokens" in part]
    own = info.get("tokens")
    if steps:
        return steps
    return [own] if isinstance(own, dict) and any(_number(own, name) for name in ("input", "output")) else []


def _number(fields: object, name: str) -> float:
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, int | float) else 0


def money(cost: float, *, known: bool) -> str:
    """A sum in dollars. What has no known price is a question mark, never nothing."""
    if known:
        return f"${cost:.4f}"
    return f"${cost:.4f} + ?" if cost else "?"
