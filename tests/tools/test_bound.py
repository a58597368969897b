"""What the model gets to see of a long output: within the limits, both ends, and where the rest is."""

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.toolkit.output import ToolOutput
from holdfast.tools import bound
from holdfast.tools.bound import Bounded, OutputLimits
from tests.examples import examples

PATH = "/data/tool-output/tool_1"
REST = (
    "are left out here, and all that the tool returned is in "
    f"{PATH}: search that file, or read it in parts ...]"
)


class Keeper:
    """Keeps what it is given, or fails to."""

    def __init__(self, path: str | None = PATH) -> None:
        self.path = path
        self.kept: list[str] = []

    async def __call__(self, text: str) -> str | None:
        self.kept.append(text)
        return self.path


def lines_of(text: str) -> int:
    return text.count("\n") + 1 if text else 0


async def test_a_file_that_cannot_be_kept_makes_the_output_lossy_and_no_failure() -> None:
    """The text says so, and there is no path."""
    keeper = Keeper(None)
    bounded = await bound.bound(ToolOutput(text="line\n" * 3000), OutputLimits(), keeper)

    assert bounded.text.count("left out here, and they could not be kept") == 1
    assert bounded.metadata() == {"truncated": True, "lossy": True}
    assert keeper.kept == ["line\n" * 3000]


async def test_text_within_the_limits_is_left_alone_and_nothing_is_kept() -> None:
    """Exactly at both limits is within."""
    keeper = Keeper()
    text = "\n".join(["é" * 4] * 10)  # 10 lines, 89 bytes
    assert await bound.bound(
        ToolOutput(text=text), OutputLimits(lines_max=10, bytes_max=89), keeper
    ) == Bounded(text=text)
    assert (await bound.bound(ToolOutput(), OutputLimits(), keeper)).metadata() == {"truncated": False}
    assert keeper.kept == []


@pytest.mark.parametrize(("lines_max", "bytes_max"), [(9, 100_000), (100_000, 88)])
async def test_one_over_either_limit_is_over(lines_max: int, bytes_max: int) -> None:
    """Lines or bytes, whichever is reached first."""
    text = "\n".join(["é" * 4] * 10)
    limits = OutputLimits(lines_max=lines_max, bytes_max=bytes_max)
    assert (await bound.bound(ToolOutput(text=text), limits, Keeper())).truncated


async def test_the_beginning_and_the_end_stand_around_a_marker_that_names_the_file() -> None:
    """The marker says how much is missing."""
    text = "\n".join(str(number) for number in range(1, 101))
    bounded = await bound.bound(ToolOutput(text=text), OutputLimits(lines_max=5, bytes_max=1000), Keeper())

    assert bounded == Bounded(
        text=f"1\n2\n[... 96 lines, 282 bytes {REST}\n99\n100",
        paths=(PATH,),
        truncated=True,
    )
    assert bounded.metadata() == {"truncated": True, "outputPath": PATH, "outputPaths": [PATH]}


async def test_paths_of_the_tool_itself_survive() -> None:
    """Before the fallback file, and also when nothing had to be cut; a lossy tool stays lossy."""
    output = ToolOutput(text="x" * 100, paths=("/a", "/b"), lossy=True)
    short = await bound.bound(output, OutputLimits(), Keeper())
    long = await bound.bound(output, OutputLimits(bytes_max=50), Keeper())

    assert short.metadata() == {
        "truncated": False,
        "outputPath": "/a",
        "outputPaths": ["/a", "/b"],
        "lossy": True,
    }
    assert (long.paths, long.lossy) == (("/a", "/b", PATH), True)


async def test_a_structured_value_without_text_is_shown_as_json_and_stays_as_it_is() -> None:
    """The model sees a bounded text of it; the value is not touched."""
    structured = {"names": ["é"] * 100}
    output = ToolOutput(structured=structured)
    small = await bound.bound(ToolOutput(structured={"a": 1}), OutputLimits(), Keeper())
    keeper = Keeper()
    large = await bound.bound(output, OutputLimits(lines_max=20), keeper)

    assert small == Bounded(text='{\n  "a": 1\n}')
    assert large.text.startswith('{\n  "names": [\n    "é",\n')
    assert large.text.endswith('    "é"\n  ]\n}')
    assert keeper.kept[0].count("é") == 100
    assert output.structured == {"names": ["é"] * 100}


async def test_with_text_the_structured_value_is_not_measured() -> None:
    """Its size is another matter."""
    output = ToolOutput(text="ok", structured={"a": "x" * 100_000})
    assert await bound.bound(output, OutputLimits(), Keeper()) == Bounded(text="ok")


async def test_a_tool_that_says_that_there_is_more_is_believed() -> None:
    """Bounding that cut nothing does not deny what the tool itself left for a next page."""
    for said, recorded in [({"truncated": True}, True), ({"truncated": False}, False), ({}, False)]:
        bounded = await bound.bound(ToolOutput(text="page", metadata=said), OutputLimits(), Keeper())
        assert bounded.metadata() == {"truncated": recorded}


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        (OutputLimits(lines_max=0, bytes_max=0), ""),
        (OutputLimits(lines_max=1, bytes_max=0), ""),
        (OutputLimits(lines_max=1, bytes_max=5), "[... "),
        (OutputLimits(lines_max=1, bytes_max=30), PATH),
        (
            OutputLimits(lines_max=2),
            f"[... 999 lines, 1999 bytes {REST}",
        ),
    ],
)
async def test_under_tiny_limits_only_the_marker_is_left(limits: OutputLimits, shown: str) -> None:
    """Or the path, or what there is room for; the typed path is always there."""
    bounded = await bound.bound(ToolOutput(text="\n".join("x" * 1000)), limits, Keeper())
    assert bounded == Bounded(text=shown, paths=(PATH,), truncated=True)


async def test_halves_of_surrogate_pairs_become_valid_text() -> None:
    """A record holds nothing else; so does the kept file."""
    keeper = Keeper()
    short = await bound.bound(ToolOutput(text="a\udcffb"), OutputLimits(), keeper)
    await bound.bound(ToolOutput(text="\ud800" * 100), OutputLimits(bytes_max=10), keeper)

    assert short == Bounded(text="a\N{REPLACEMENT CHARACTER}b")
    assert keeper.kept == ["\N{REPLACEMENT CHARACTER}" * 100]


async def test_a_huge_text_is_measured_beside_the_event_loop() -> None:
    """The result is the same; other tasks go on meanwhile."""
    text = "é" * bound.LARGE_CHARS + "end"
    turns = 0
    done = anyio.Event()

    async def others() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await anyio.sleep(0)

    async with anyio.create_task_group() as group:
        group.start_soon(others)
        bounded = await bound.bound(ToolOutput(text=text), OutputLimits(), Keeper())
        done.set()

    assert turns > 1
    assert bounded.text.startswith("éé")
    assert bounded.text.endswith("éend")
    assert len(bounded.text.encode()) <= OutputLimits().bytes_max


TEXTS = st.lists(
    st.text(alphabet=st.sampled_from("ab\néß漢😀\r\udc80\N{COMBINING ACUTE ACCENT}"), max_size=40),
    max_size=40,
).map("".join)
LIMITS = st.builds(
    OutputLimits,
    lines_max=st.integers(0, 60),
    bytes_max=st.integers(0, 700),
)


@pytest.mark.ci
@settings(max_examples=examples(400))
@given(text=TEXTS, limits=LIMITS, path=st.sampled_from([PATH, None]))
async def test_bounded_text_is_within_both_limits_valid_and_keeps_both_ends(
    text: str, limits: OutputLimits, path: str | None
) -> None:
    """For every text and every limit; bounding again changes nothing; what is kept is the complete text."""
    keeper = Keeper(path)
    bounded = await bound.bound(ToolOutput(text=text), limits, keeper)
    again = await bound.bound(ToolOutput(text=bounded.text), limits, Keeper())
    whole = text.replace("\udc80", "\N{REPLACEMENT CHARACTER}")

    assert len(bounded.text.encode()) <= limits.bytes_max
    assert lines_of(bounded.text) <= limits.lines_max
    assert again == Bounded(text=bounded.text)
    fits = len(whole.encode()) <= limits.bytes_max and lines_of(whole) <= limits.lines_max
    assert bounded.truncated is not fits
    assert keeper.kept == ([] if fits else [whole])
    if fits:
        assert bounded.text == whole
        return
    head, marker, tail = split(bounded.text)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    if marker is not None:
        left_out = len(whole.encode()) - len(head.encode()) - len(tail.encode())
        assert f"{left_out} bytes are left out" in marker
        assert (path is None) == ("could not be kept" in marker)


def split(text: str) -> tuple[str, str | None, str]:
    """What stands before and after the marker; a tiny limit may have cut even that."""
    lines = text.split("\n")
    at = next(
        (index for index, line in enumerate(lines) if line.startswith("[... ") and line[-1] == "]"), None
    )
    if at is None:
        return "", None, ""
    return "\n".join(lines[:at]), lines[at], "\n".join(lines[at + 1 :])
