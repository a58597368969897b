"""What is read of a command: its patterns, their other spellings, what "always" stands for, and its paths."""

import time
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.permission.shell import syntax
from holdfast.permission.shell.read import read
from holdfast.permission.shell.reading import Pattern, Reading
from holdfast.permission.shell.syntax import PARSED_BYTES_MAX
from tests.examples import examples


def reading(command: str) -> Reading:
    """In a project of its own."""
    return read(command, directory="/w/p", home="/h")


def test_a_compound_command() -> None:
    """Each simple command is a pattern; `cd` is none, and counts for the paths after it."""
    assert reading("cd sub && FOO=1 git 'push' origin | tee ../../log 2>&1") == Reading(
        patterns=(
            Pattern(text="FOO=1 git 'push' origin", aliases=("git push origin",)),
            Pattern(text="tee ../../log", always="tee *"),
        ),
        touched=("/w/p/sub", "/w/p/../../log", "/w/p/sub/../../log"),
    )


@pytest.mark.parametrize(
    ("command", "always"),
    [
        ("ls -la", "ls *"),
        ("git push origin", "git push *"),
        ("git stash list -p", "git stash list *"),
        ("npm run build --prod", "npm run build *"),
        ("docker compose up", "docker compose up *"),
        ("python3 -m pytest -q", "python3 -m pytest *"),
        ("python3 run.py", "python3 run.py *"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ("bash -c ls", "bash -c ls"),
        ("sudo ls x", "sudo ls x"),
        ("git -C sub push", "git -C sub push"),
        ("timeout 5 make all", "make all *"),
        ("CI=1 npm test", "CI=1 npm test *"),
        ("ls > out", "> out"),
        ("'ls' x", None),
        ("sudo ls *", None),
        ("eval ls", None),
    ],
)
def test_what_always_stands_for(command: str, always: str | None) -> None:
    """The action with any arguments; a command that runs others only as it is; nothing that is too much."""
    assert reading(command).patterns[0].always == always


@pytest.mark.parametrize(
    ("command", "touched", "mentioned"),
    [
        ("cat a /etc/x", ["/w/p/a", "/etc/x"], []),
        ("cat ~/a $HOME/b \"${HOME}/c\" '$HOME/d'", ["/h/a", "/h/b", "/h/c", "/w/p/$HOME/d"], []),
        ("x=../a; cat $x/b", ["/w/p/../a/b"], []),
        ("for d in a /etc; do rm -r $d/*; done", ["/w/p/a", "/etc"], []),
        ("cd /t; cd s; cat x", ["/t", "/w/p/s", "/t/s", "/w/p/x", "/t/x", "/w/p/s/x", "/t/s/x"], []),
        ("dd if=/dev/zero of=/x", ["/x"], []),
        ("cp -t/etc a", ["/w/p/a"], ["/etc"]),
        ("tar -C /etc --file=/x -xf a.tar", [], ["/etc", "/x"]),
        ("grep -r x ../..", [], ["/w/p/../.."]),
        ("cat < /a > b 2>> ~/c", ["/a", "/w/p/b", "/h/c"], []),
        ("/opt/x/run a", [], ["/opt/x/run"]),
        ("ls /dev/null > /dev/null", [], []),
    ],
)  # fmt: skip
def test_the_paths_of_a_command(command: str, touched: list[str], mentioned: list[str]) -> None:
    """What it reads, writes or goes to, from each folder that it may be in; other arguments that lead out."""
    found = reading(command)
    assert (list(found.touched), list(found.mentioned), found.paths_unclear) == (touched, mentioned, None)


@pytest.mark.parametrize(
    "command",
    ["cat $X", "rm $(ls)", "cat ~other/x", "cd - && cat x", "cd $D; cat x", "cat a*/../../x",
     "while true; do cd ..; cat x; done", "x=a; while true; do x=$x/..; cat $x; done",
     "read x; cat $x", "cat {1..3}", "echo > $OUT", "xargs cat", "cat $HOME/a; HOME=/etc"],
)  # fmt: skip
def test_paths_that_are_known_only_at_run_time(command: str) -> None:
    """It is said that they are not known."""
    found = reading(command)
    assert found.unclear is None
    assert found.paths_unclear is not None


HOSTILE = [
    "(", "$(", "`", '"$(', "{ ", "<<A ", "cat <<A\n", "if ", "[[ (", "$((", "${a:-", "a|", "case x in a) ",
    "a;", "a ", "a$b", "x=(", "a=~(", "\\", "'", "sh -c '", "a{b,", "cd ..;", "x=$x$x;", "$(a ", "\x00",
    "\ud800", "cat <<'A'\n|\nA\n", "a&", "[[ $([[ $(", "x=a{,b}{,c}{,d}{,e};cat $x$x$x;",
]  # fmt: skip


@pytest.mark.ci
@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_input_takes_bounded_time(unit: str) -> None:
    """100 KB of anything, and as much as is parsed at all, are answered within a second or two of CPU."""
    for size in (100_000, PARSED_BYTES_MAX):
        began = time.process_time()
        reading((unit * size)[:size])
        assert time.process_time() - began < 5


def test_a_large_file_in_a_here_document_is_understood() -> None:
    """Its text is not parsed: only what the shell expands counts."""
    body = "\n".join(f"    x = {{'a': [{number} | 1]}}  # `$(rm)`" for number in range(3_000))
    command = f"cat > big.py <<'EOF'\n{body}\nEOF\nmake"
    found = reading(command)
    assert ([each.text for each in found.patterns], found.unclear) == (
        ["> big.py", "cat > big.py <<'EOF'", "make"],
        None,
    )


TOKENS = st.sampled_from(
    [
        *HOSTILE,
        "\n",
        " ",
        "ls",
        "rm x",
        ")",
        "}",
        "fi",
        "done",
        "esac",
        "]]",
        "))",
        '"',
        "&&",
        "||",
        ">",
        "<",
        "$x",
    ]
)


@settings(max_examples=examples(150), deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(TOKENS, max_size=12).map("".join)))
def test_no_text_makes_it_fail(command: str) -> None:
    """Any text has a reading; where it is unclear, the whole text is a pattern, and nothing can be saved."""
    found = reading(command)
    if found.unclear is not None:
        assert command.strip() in [each.text for each in found.patterns]
        assert {each.always for each in found.patterns} == {None}


@pytest.mark.parametrize(
    "command",
    [
        "a; " * 3_000, "a | " * 301 + "a", "{\\c1 x; }", "c\\\n1", "[ a\n]", "$'c1'\\c1 x", "x=$\nB\n(true)",
        "\\ ]", '!"c3" a', "[a]", "c1 <<A\nx $(c1 <<A\nA\n)\nA", "c\\` `x=$ c2`", "y=1 >&2'a' x", "*99='a'",
    ],
)  # fmt: skip
def test_what_the_parser_reads_otherwise_than_the_shell_is_unclear(command: str) -> None:
    """Each was found by the random search against a real shell, or is more than is parsed."""
    assert reading(command).unclear is not None


def test_no_more_is_parsed_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser is not even called: its memory grows with the square of some inputs."""

    def never() -> NoReturn:
        raise AssertionError("parsed")

    monkeypatch.setattr(syntax, "_parser", never)
    for command in ("a " * PARSED_BYTES_MAX, "a|" * (syntax.PIPES_MAX + 1) + "a"):
        assert reading(command).unclear == f"it is longer than the {PARSED_BYTES_MAX} bytes that are read"
