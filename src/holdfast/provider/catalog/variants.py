"""The variants that a reasoning model has of itself: how hard it shall think. Pure.

What the data says about a model (`reasoning_options`) counts; where it says nothing, the rules below know the
families. A variant is Settings in the vocabulary of `ingest.py`, so it means the same in every adapter.
"""

import re
from collections.abc import Sequence

from holdfast.provider.catalog import ingest
from holdfast.provider.catalog.model import Settings
from holdfast.schema.provider_entry import ReasoningOption
from holdfast.schema.wire import JsonMap

EFFORTS = ("low", "medium", "high")

# They think as they like: an effort is refused or ignored.
UNSTEERED = ("deepseek", "minimax", "glm", "kimi", "k2p", "qwen", "mistral", "magistral", "grok")

BUDGET_HIGH, BUDGET_MAX, BUDGET_MIN = 16_000, 31_999, 1_024
GEMINI_BUDGET_MAX, GEMINI_PRO_BUDGET_MAX = 24_576, 32_768

CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)")
GPT_5 = re.compile(r"(?:^|/)gpt-5(?:\.(\d+))?(?:-|$)")


def defaults(
    npm: str,
    api_id: str,
    *,
    reasoning: bool,
    output_limit: int = 0,
    options: Sequence[ReasoningOption] | None = None,
) -> dict[str, Settings]:
    """Variants by name, weakest first; none for a model that does not reason."""
    if not reasoning:
        return {}
    id = api_id.lower()
    stated = _stated(options)
    match ingest.kind_of(npm):
        case "anthropic" | "bedrock" if "claude" in id:
            return _claude(id, output_limit, stated)
        case "google":
            return _gemini(id, stated)
        case "openai":
            efforts = stated if stated is not None else _openai_efforts(id)
            return {effort: _openai(effort) for effort in efforts}
        case "anthropic" | "bedrock":
            return {effort: _effort(effort) for effort in stated or ()}
        case _:
            return {
                effort: _effort(effort) for effort in (stated if stated is not None else _chat_efforts(id))
            }


def _stated(options: Sequence[ReasoningOption] | None) -> tuple[str, ...] | None:
    """The efforts that the data names; None where it is silent."""
    if options is None:
        return None
    values = [value for option in options if option.type == "effort" for value in option.values]
    return tuple(dict.fromkeys("none" if value is None else value for value in values))


def _effort(effort: str) -> Settings:
    return Settings(options={"reasoning_effort": effort})


def _openai(effort: str) -> Settings:
    return Settings(
        options={
            "reasoning_effort": effort,
            "reasoning_summary": "auto",
            "include": ["reasoning.encrypted_content"],
        }
    )


def _openai_efforts(id: str) -> tuple[str, ...]:
    five = GPT_5.search(id)
    if five is None or "deep-research" in id:
        return ("medium",) if "deep-research" in id else _chat_efforts(id)
    minor = int(five[1] or 0)
    if "-chat" in id:
        return ("medium",) if minor else ()
    if "-pro" in id:
        return ("medium", "high", "xhigh") if minor else ("high",)
    if "codex" in id:
        none = ("none",) if minor >= 3 else ()
        xhigh = ("xhigh",) if minor >= 2 or "codex-max" in id else ()
        return (*none, *EFFORTS, *xhigh)
    if minor == 0:
        return ("minimal", *EFFORTS)
    return ("none", *EFFORTS, "xhigh") if minor >= 2 else ("none", *EFFORTS)


def _chat_efforts(id: str) -> tuple[str, ...]:
    five = GPT_5.search(id)
    if five is not None:
        return _openai_efforts(id)
    if "grok-3-mini" in id:
        return ("low", "high")
    return () if any(family in id for family in UNSTEERED) else EFFORTS


def _claude(id: str, output_limit: int, stated: tuple[str, ...] | None) -> dict[str, Settings]:
    found = CLAUDE.search(id)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if version >= (4, 6):
        xhigh = ("xhigh",) if version >= (4, 7) else ()
        efforts = stated or (*EFFORTS, *xhigh, "max")
        adaptive: JsonMap = {"type": "adaptive"}
        return {
            effort: Settings(options={"thinking": adaptive, "reasoning_effort": effort}) for effort in efforts
        }
    budgets = {"high": BUDGET_HIGH, "max": BUDGET_MAX}
    if output_limit:
        # Thinking counts as output, and something must remain for the answer.
        budgets = {"high": min(BUDGET_HIGH, output_limit // 2 - 1), "max": min(BUDGET_MAX, output_limit - 1)}
    return {
        name: Settings(options={"thinking": {"type": "enabled", "budget_tokens": budget}})
        for name, budget in budgets.items()
        if budget >= BUDGET_MIN
    }


def _gemini(id: str, stated: tuple[str, ...] | None) -> dict[str, Settings]:
    shown: JsonMap = {"include_thoughts": True}
    if "2.5" in id:
        most = GEMINI_PRO_BUDGET_MAX if "pro" in id else GEMINI_BUDGET_MAX
        return {
            name: Settings(options={"thinking": shown | {"budget_tokens": budget}})
            for name, budget in (("high", BUDGET_HIGH), ("max", most))
        }
    levels = stated or (("minimal", *EFFORTS) if "flash" in id else EFFORTS)
    return {level: Settings(options={"thinking": shown, "reasoning_effort": level}) for level in levels}
