"""The command that another one runs: `env`, `sudo`, `timeout`, `xargs`, `find -exec`, `git`, `sh -c`.

What must stay true: an option that is not listed ends the reading, since it could take the next word as its
value, and then another word is the command.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.permission.shell import programs
from holdfast.permission.shell.syntax import NotUnderstood
from holdfast.permission.shell.word import ANY, HOME, Word, literal


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    """What a command runs."""

    words: Sequence[Word] = ()
    """Another command."""
    script: str | None = None
    """The text of a script."""
    harmless: bool = False
    """Whether only the other command counts."""
    meant: Sequence[Word] = ()
    """The arguments without options that stand before the subcommand."""
    launched: Sequence[Word] = ()
    """A program that is started in an environment of the project's: another spelling, not another command."""


class Wrapper(msgspec.Struct, frozen=True):
    """How the options of a program look that runs another: those alone, those with a value, and how many
    other words come before the command.
    """

    flags: str
    values: str
    before: int = 0
    harmless: bool = True


WRAPPERS: Final = {
    "builtin": Wrapper("", ""),
    "chrt": Wrapper("-[bfior]", "-[p]", 1),
    "command": Wrapper("-p|--", ""),
    "doas": Wrapper("-[n]", "-[u]", harmless=False),
    "env": Wrapper("-|-[i0v]+|--|--ignore-environment|--unset=.*|-u.+", "-u|--unset", harmless=False),
    "exec": Wrapper("-[cl]+|--", "-a"),
    "ionice": Wrapper("-[t]|-[cn].+", "-[cn]"),
    "nice": Wrapper("-n.+|-[0-9]+|--adjustment=.*", "-n|--adjustment"),
    "nohup": Wrapper("--", ""),
    "pkexec": Wrapper("", "--user", harmless=False),
    "setsid": Wrapper("-[cfw]+|--fork|--wait|--ctty", ""),
    "stdbuf": Wrapper("-[ioe].+|--(input|output|error)=.*", "-[ioe]"),
    "sudo": Wrapper("-[nEHkb]+|--", "-[ug]", harmless=False),
    "taskset": Wrapper("-c|--cpu-list", "", 1),
    "time": Wrapper("-[pv]|--", ""),
    "timeout": Wrapper("-[ks].+|--(preserve-status|foreground|verbose)|--(kill-after|signal)=.*", "-[ks]", 1),
    "xargs": Wrapper(
        "-[0rtx]+|-[nILPdsEa].+|--(null|no-run-if-empty|verbose)|--(max-args|max-procs|replace)=.*",
        "-[nILPdsEa]",
        harmless=False,
    ),
}  # fmt: skip
NAMES: Final = frozenset((*WRAPPERS, *programs.SHELLS, "find", "git", "awk", "gawk", "mawk", "sed", "gsed"))

_LAUNCHERS: Final = (
    ("bundle", "exec"), ("bunx", ), ("conda", "run"), ("hatch", "run"), ("npm", "exec"), ("npx", ),
    ("pdm", "run"), ("pipenv", "run"), ("pnpm", "exec"), ("poetry", "run"), ("rye", "run"), ("uv", "run"),
    ("uvx", ), ("xvfb-run", ), ("yarn", "exec"),
)  # fmt: skip
_GIT_SHORT: Final = {"rebase": "x", "clone": "u"}
"""Short options of git by which it runs a program, alone or behind others (`-ix`)."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SHELL_FLAGS = re.compile(r"-[elux]+|-o|pipefail|errexit|nounset|--norc|--noprofile")
_EXECS: Final = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FIND_FILES: Final = frozenset(("-fprint", "-fprint0", "-fls", "-fprintf"))
_SED_BRACKET: Final = r"\[\^?\]?(?:\[:[a-z]+:\]|\\[nt]|(?!END)[^]\[\\\n])*\]"
_SED_REGEX: Final = rf"(?:\\.|{_SED_BRACKET}|(?!END)[^\\\n\[])*END"
"""Up to its end sign; one that holds that sign in brackets is not understood, as programs differ there."""
_SED_PLACE: Final = rf"(?:\d+(?:~\d+)?|[+~]\d+|\$|/{_SED_REGEX.replace('END', '/')}[IM]*)\ *"
_SED_STEP = re.compile(
    rf"(?:{_SED_PLACE}(?:,\ *{_SED_PLACE})?)?(?:!\ *)?(?:\{{|(?:"
    r"[=dDgGhHnNpPxzF]|[lqQ]\ *\d*|[btT:]\ *[\w.-]*"
    rf"|s([^\w\s\\]){_SED_REGEX.replace('END', chr(92) + '1')}(?:\\.|(?!\1)[^\\\n])*\1[gpiIMm0-9]*"
    r"|y([^\w\s\\\[])(?:(?!\2)[^\\\n\[])*\2(?:(?!\2)[^\\\n\[])*\2"
    r"|[aic](?:\\|\ )[^\n\\]*(?=\n|\Z)"
    r")\ *(?=[;}\n]|\Z))"
)
"""One command of a script that only changes the text; `e` and `w` run and write, also as flags of `s`."""
_SED_BETWEEN = re.compile(r"[\s;}]*")
_SED_OPTIONS = re.compile(
    r"-[nErsuz]+|-[nErsuz]*i.*|--in-place(=.*)?|"
    r"--(quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|sandbox|debug|version|help)"
)
_AWK_RUNS = re.compile(r"system\s*\(|(?<!\|)\|(?!\|)|getline|@|print[^;}\n]*>")


def inner(name: str, words: Sequence[Word]) -> Inner:
    """What a command runs, if anything."""
    if name in WRAPPERS:
        return _wrapped(name, words)
    if name in programs.SHELLS:
        return _shell(name, words[1:])
    match name:
        case "find":
            return _find(words[1:])
        case "git":
            return _git(words[1:])
        case "sed" | "gsed" | "awk" | "gawk" | "mawk":
            _check_script(name, words[1:])
        case _:
            pass
    for launcher in _LAUNCHERS:
        if tuple(each.text for each in words[: len(launcher)]) == launcher:
            rest = [each for each in words[len(launcher) :] if not each.source.startswith("-")]
            return Inner(launched=rest)
    return Inner()


def _wrapped(name: str, words: Sequence[Word]) -> Inner:
    wrapper = WRAPPERS[name]
    if name == "command" and any(each.text in ("-v", "-V") for each in words[1:2]):
        return Inner()
    at, before = 1, wrapper.before
    while at < len(words):
        text = words[at].text
        if text is None:
            raise NotUnderstood(f"what {name} runs is known only when it runs")
        if text.startswith("-"):
            if re.fullmatch(wrapper.values or "(?!)", text):
                at += 1
            elif not re.fullmatch(wrapper.flags or "(?!)", text):
                raise NotUnderstood(f"the option {text[:40]} of {name} is not understood")
        elif before > 0:
            before -= 1
        elif not (name == "env" and _ASSIGNMENT.fullmatch(text)):
            break
        at += 1
    rest = list(words[at:])
    if name == "xargs" and rest:
        rest.append(literal("…"))
    if name in ("builtin", "time") and not rest:
        raise NotUnderstood(f"{name} is not understood here")
    return Inner(words=rest, harmless=wrapper.harmless)


def _shell(name: str, words: Sequence[Word]) -> Inner:
    if name in ("busybox", "fish") or not words:
        raise NotUnderstood(f"what {name} runs is not known")
    for index, each in enumerate(words):
        text = each.text
        if text is None:
            break
        if re.fullmatch(r"-[elux]*c", text):
            # Options may follow: the script is the first word that is none.
            following = [other.text for other in words[index + 1 : index + 3]]
            is_ended = following[:1] == ["--"]
            script = next(iter(following[1:] if is_ended else following), None)
            if script is None or {ANY, HOME} & set(script) or (script[:1] in ("-", "+") and not is_ended):
                break
            return Inner(script=script)
        if text == "--version":
            return Inner()
        if not _SHELL_FLAGS.fullmatch(text):
            if text.startswith(("-", "+", "/dev/")):
                break
            return Inner()  # A file: a program like any other.
    raise NotUnderstood(f"what {name} runs is known only when it runs")


def _find(words: Sequence[Word]) -> Inner:
    texts = [each.text for each in words]
    starts = [index for index, text in enumerate(texts) if text in _EXECS]
    if any(text in _FIND_FILES for text in texts):
        raise NotUnderstood("find writes a file")
    if "-delete" in texts and not starts:
        return Inner(words=[literal("rm", "rm"), literal("…", ".")])
    if not starts:
        return Inner()
    if len(starts) > 1 or "-delete" in texts:
        raise NotUnderstood("find runs several commands")
    end = next((at for at in range(starts[0], len(texts)) if texts[at] in (";", "+")), len(texts))
    run = list(words[starts[0] + 1 : end])
    if not run:
        raise NotUnderstood("what find runs is not understood")
    return Inner(words=[_placed(each) for each in run])


def _placed(word: Word) -> Word:
    """`{}` stands for a file below the folders that find was given, and those are judged."""
    return literal("{}", ".") if word.text == "{}" else word


def _git(words: Sequence[Word]) -> Inner:
    at = 0
    while at < len(words):
        text = words[at].text
        if text is None:
            raise NotUnderstood("what git does is known only when it runs")
        if not text.startswith("-"):
            break
        if text in ("-c", "-C"):
            at += 1
            if at == len(words) or (text == "-c" and not _is_setting(words[at].text)):
                raise NotUnderstood("a setting of git may run a program")
        elif text not in (
            "--no-pager",
            "-P",
            "--version",
            "--help",
            "--no-optional-locks",
            "--literal-pathspecs",
        ):
            raise NotUnderstood(f"the option {text[:40]} of git is not understood")
        at += 1
    rest = list(words[at:])
    if rest and (rest[0].text in programs.GIT_RUNS or "ext::" in "".join(each.shown for each in rest)):
        raise NotUnderstood(f"git {rest[0].shown} runs other programs")
    for name, sign in _GIT_SHORT.items():
        if rest and rest[0].text == name and any(_is_short(each.text, sign) for each in rest):
            raise NotUnderstood(f"git {name} -{sign} runs other programs")
    return Inner(meant=rest if at else ())


def _is_short(text: str | None, sign: str) -> bool:
    return text is None or (text[:1] == "-" and text[:2] != "--" and sign in text)


def _is_setting(text: str | None) -> bool:
    return text is not None and text.lower().startswith(programs.GIT_SETTINGS)


def _check_script(name: str, words: Sequence[Word]) -> None:
    """Sed and awk run programs, and write files, from their scripts."""
    if name.endswith("sed"):
        for script in _sed_scripts(words):
            at = _after(_SED_BETWEEN.match(script))
            while at < len(script):
                step = _SED_STEP.match(script, at)
                if step is None:
                    raise NotUnderstood("the script of sed may run a program or write a file")
                at = _after(_SED_BETWEEN.match(script, step.end()))
        return
    for each in _scripts(name, words):
        text = each.text
        if text is None or text.startswith(("-f", "--file", "-s", "--expression")):
            raise NotUnderstood(f"the script of {name} is known only when it runs")
        if _AWK_RUNS.search(text):
            raise NotUnderstood(f"the script of {name} may run a program or write a file")


def _after(found: re.Match[str] | None) -> int:
    return 0 if found is None else found.end()


def _sed_scripts(words: Sequence[Word]) -> list[str]:
    """The scripts of sed: its options may stand anywhere, also behind its files."""
    given, others = list[str | None](), list[str | None]()
    left = [each.text for each in words]
    while left:
        text = left.pop(0)
        if text == "--":
            others += left
            break
        if text is None or not text.startswith("-") or text == "-":
            others.append(text)
        elif found := re.fullmatch(r"(?:-[nErsuz]*e|--expression(?:=|\Z))(.*)", text, re.DOTALL):
            given.append(found[1] if found[1] or text.endswith("=") or not left else left.pop(0))
        elif not _SED_OPTIONS.fullmatch(text):
            raise NotUnderstood(f"the option {text[:40]} of sed is not understood")
    scripts = given or others[:1]
    known = [text for text in scripts if text is not None]
    if len(known) < len(scripts):
        raise NotUnderstood("the script of sed is known only when it runs")
    return known


def _scripts(name: str, words: Sequence[Word]) -> list[Word]:
    """The words that are scripts: those after `-e`, else the first that is no option; and odd options."""
    found: list[Word] = []
    given = False
    at = 0
    while at < len(words):
        text = words[at].text
        if text in ("-e", "--expression"):
            found += words[at + 1 : at + 2]
            given, at = True, at + 1
        elif name.endswith("awk") and text in ("-F", "-v"):
            at += 1
        elif text is None or not text.startswith("-"):
            return found if given else [*found, words[at]]
        elif text.startswith(("-e", "-f", "--file", "-s", "--expression")):
            found.append(words[at])
        at += 1
    return found
