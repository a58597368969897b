"""What a real bash runs of random commands, against what was read of them."""

import os
import random
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.permission.shell.read import read
from holdfast.permission.shell.reading import Reading
from tests.examples import examples

PIECES = [
    "c1", "c2", "c3", " ", "\n", "\t", ";", "&&", "||", "|", "&", "(", ")", "{ ", "; }", "{", "}", "$(",
    "`", "\\`", '"', "'", "\\", "$'", '$"', "$x", "${x}", "${x:-", "${x:=", "${!x}", "$((", "))", "((",
    "[[ ", "]] ", "[ ", " ]", "<<A\n", "<<'A'\n", "<<-A\n", "\nA\n", "<<<", "<", "> f", "2>&1", ">&2",
    "<(", "#", "# ", "x=", "x=c2;", "y=1 ", "for x in c1 c2; do ", "; done", "while c3; do break; ",
    "if ", "; then ", "; fi", "case a in a) ", ";; esac", "f() { ", "f;", "! ", "time ", "eval ", "exec ",
    "command ", "{c1,c2}", "*", "[a]", "~", "a", "'c2'", '"c3"', "\\c1", "c''1", "$'c1'", "$'\\x63\\x31'",
    "x='c1';", '"$x"', "set -- c1;", '"$@"', "echo ", "\r", "\u00a0", "a[$(c1)]", "x[$(c2)]=1", "${x@P}",
    "declare ", "export ", "read x ", "let ", "trap 'c1' EXIT;", "until ", "-v ", "'a[$(c3)]'", "=(",
    "${x[0]} ", "@(", "\\\n", "\n#\n", ">&-", "&>f", "{1..2}", "$", "cat ", "<<A <<B\n", "-eq ",
]  # fmt: skip
WHOLE = ["c1", "c2 a", "'c3' b", "c1 $x", "c\\1 b", "x=1 c2", "c1 > f", "c2 2>&1", "[ a ]", "echo $(c2)"]
FRAMES = [
    "{}; {}", "{} && {}", "{} | {}", "( {} )", "{{ {}; }}", "c1 $({})", 'c2 "$({})"', "c3 `{}`", "! {}",
    "c1 <<A\nx $({})\nA\n{}", "c1 <<'A'\nx $({})\nA\n{}", "for x in a b; do {}; done", "c1 <({})",
    "while {}; do {}; break; done", "if {}; then {}; else {}; fi", "case a in a) {};; *) {};; esac",
    "f() {{ {}; }}; f", "{} &\n{}",
    "x=$({}); {}", "{} # c\n{}", "{} || {}", "c2 ${{x:-$({})}}",
]  # fmt: skip


LOOKED_FOR = """() {
    builtin printf "%s\\n" "$1" >> "$SEEN"
    if builtin read -r -N 600 _ < "$SEEN"; then builtin kill -9 $$; fi
}"""
"""What bash calls for a command that is not there: notes its name, and ends a loop that runs for ever."""


def random_command(draw: random.Random) -> str:
    """Pieces in any order, sound commands, or sound commands with pieces put in."""
    kind = draw.random()
    if kind < 0.4:
        return "".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 9)))
    command = framed(draw, draw.randrange(0, 4))
    for _ in range(draw.randrange(0, 4) if kind < 0.7 else 0):
        at = draw.randrange(len(command) + 1)
        command = command[:at] + draw.choice(PIECES) + command[at + draw.randrange(0, 3) :]
    return command


def framed(draw: random.Random, depth: int) -> str:
    """A sound command."""
    if depth <= 0:
        return draw.choice(WHOLE)
    frame = draw.choice(FRAMES)
    count = frame.replace("{{", "").replace("}}", "").count("{}")
    return frame.format(*(framed(draw, depth - draw.choice((1, 2))) for _ in range(count)))


def shows(found: Reading, name: str) -> bool:
    """Whether a command of that name is among what was read."""
    spellings = [text for each in found.patterns for text in (each.text, *each.aliases)]
    return any(f" {name} " in f" {text} " for text in spellings)


@pytest.mark.ci
@pytest.mark.needs("bash")
def test_whatever_bash_runs_was_read_or_is_unclear(tmp_path: Path) -> None:
    """No command runs that the reading does not show; bash names each that it looks for."""
    draw = random.Random(os.environ.get("HOLDFAST_EXPLORE", "5"))
    (tmp_path / "work").mkdir()
    environment = {
        "PATH": "/nonexistent",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "BASH_FUNC_command_not_found_handle%%": LOOKED_FOR,
    }
    bash = shutil.which("bash")
    assert bash is not None
    missed = []
    for number in range(examples(400, times=100)):
        command = random_command(draw)
        found = read(command, directory="/w/p", home="/h")
        if found.unclear is not None or "\0" in command:
            continue
        seen = tmp_path / f"seen-{number}"
        with suppress(subprocess.TimeoutExpired):  # Some of them loop for ever.
            subprocess.run(
                [bash, "-c", command],
                cwd=tmp_path / "work",
                env={**environment, "SEEN": str(seen)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=2,
                check=False,
            )
        names = seen.read_text().split("\n")[:-1] if seen.exists() else []
        missed += [(command, name) for name in names if not shows(found, name)]
    assert missed == []
