"""The samples of docs/library.md: each is a whole program, runs as it stands, and is typed.

They run in a thread of this process, over HTTP, against a provider on this machine that plays what is
written here: a program of a user has no script in it.
"""

import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import anyio.to_thread
import pytest

from holdfast.testing.mock_provider import MockProvider
from holdfast.testing.mock_provider.script import Call, Raw, Reply, Say, Turn, Usage
from tests.stories.world import World

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")


def samples() -> dict[str, str]:
    """Every program of the page, by the heading above it; a second one has a number."""
    found: dict[str, str] = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", section, re.DOTALL), 1):
            found[title if number == 1 else f"{title} {number}"] = code
    return found


SAMPLES = samples()


def says(text: str) -> Reply:
    return Reply((Say(text),), usage=Usage(input=100, output=20))


def calls(name: str, **input: object) -> Reply:
    return Reply((Call(name, dict(input)),))


WRONG = '{"error":{"message":"no such model","type":"invalid_request_error"}}'

PLAYED: dict[str, tuple[list[Turn], list[str]]] = {
    "A first answer": ([says("The comma is missing.")], ["The comma is missing."]),
    "Sessions": (
        [says("The comma is missing."), says("Done.")],
        ["The comma is missing.", "Done.", "100 tokens in, 20 out"],
    ),
    "Streaming": ([says("It reads, then it builds a tree.")], ["It reads, then it builds a tree."]),
    "Streaming 2": (
        [calls("read", filePath="notes.txt"), says("It says hello.")],
        ["read: notes.txt", "done"],
    ),
    "Tools of your own": ([calls("stock", article="4711"), says("There are 12.")], ["There are 12."]),
    "Asking before something happens": (
        [
            calls("deploy", target="production"),
            calls("deploy", target="staging"),
            says("It is on staging."),
        ],
        ["It is on staging."],
    ),
    "Errors": (
        [Raw((WRONG.encode(),), 404, {"content-type": "application/json"}), says("Hello to you.")],
        [
            *("APIError 404 False", "", "Hello to you."),
            "session ses_unknown does not exist; `holdfast session list --all` shows those that do",
        ],
    ),
    "Answers in a form": ([calls("StructuredOutput", files=3)], ["4"]),
    "Budgets": ([says("It is small.")], ["It is small.", "tokens: 120", "BudgetExceededError"]),
    "What the model is told": ([says("I do not know."), says("2.1 runs.")], ["2.1 runs."]),
    "All sessions, all messages": (
        [],
        ["['two']", "two user Remember two.", "one user Remember one."],
    ),
    "Terminals": ([], ["True", "3", "hello world 20 0"]),
    "Records by key": ([], ["The parser", "['mend it']", "['project', 'session', 'todo']", "gone"]),
    "Tests": ([], ["It says hello.", "2 requests"]),
}


def test_every_sample_is_run() -> None:
    """None is left out."""
    assert list(SAMPLES) == list(PLAYED)


@pytest.mark.parametrize("name", PLAYED)
async def test_a_sample_runs_as_it_stands(
    world: World, mock: MockProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """With the settings of a user, in a folder with a file, it prints what the page promises."""
    turns, printed = PLAYED[name]
    model = {"limit": {"context": 100_000, "output": 8_000}, "cost": {"input": 1, "output": 2}}
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{mock.url}/v1", "apiKey": "k"},
        "models": {"m": model},
    }
    world.settings(model="acme/m", small_model="acme/m", provider={"acme": entry})
    (world.project / "notes.txt").write_text("hello\n")
    monkeypatch.chdir(world.project)
    mock.play(*turns)
    code = SAMPLES[name].replace("/tmp/example.db", f"{tmp_path}/example.db")

    with redirect_stdout(io.StringIO()) as out, anyio.fail_after(30):
        await anyio.to_thread.run_sync(exec, compile(code, name, "exec"), {"__name__": "__main__"})

    assert out.getvalue().splitlines() == printed
    assert (mock.unexpected, mock.unplayed) == ([], ())


@pytest.mark.ci
def test_every_sample_is_typed(tmp_path: Path) -> None:
    """`mypy --strict` finds nothing in them, and finds a wrong keyword, name or field."""
    for number, code in enumerate(SAMPLES.values()):
        (tmp_path / f"sample_{number}.py").write_text(code)
    wrong = (
        "import holdfast\n"
        'holdfast.run_sync("Hi", modle="a/b")\n'
        "async def f(hf: holdfast.Holdfast, part: holdfast.Part) -> None:\n"
        '    await hf.sessions.process("ses_1", "Hi", modle="a/b")\n'
        "    await hf.sessions.list(limmit=1)\n"
        "    print(part.text, holdfast.opne)\n"
    )
    (tmp_path / "wrong.py").write_text(wrong)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", tmp_path],  # as `scripts/check` does
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=300,
    )
    lines = [line for line in ran.stdout.splitlines() if "note:" not in line]

    found = [re.sub(r"^.*/(\w+\.py:\d+): error: .*  \[(.*)\]$", r"\1 \2", line) for line in lines]
    expected = ["2 call-arg", "4 call-arg", "5 call-arg", "6 attr-defined", *["6 union-attr"] * 10]
    assert sorted(found) == sorted(f"wrong.py:{each}" for each in expected), ran.stdout
