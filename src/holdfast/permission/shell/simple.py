"""Judges one simple command: its pattern, the paths it touches, and the command that it runs in its turn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.permission.shell import arity, inner, programs, variables
from holdfast.permission.shell.found import Found
from holdfast.permission.shell.reading import Pattern
from holdfast.permission.shell.syntax import NotUnderstood
from holdfast.permission.shell.word import ANY, HOME, Word

if TYPE_CHECKING:
    from holdfast.permission.shell.walk import Walk

_SILENT: Final = frozenset((":", "[", "break", "continue", "exit", "false", "return", "test", "true"))
"""Commands that do nothing by themselves; they need no rule."""
_DECLARES: Final = frozenset(("declare", "typeset", "local", "export", "readonly"))


def is_known(name: str) -> bool:
    """Whether a function of this name would take the place of a command that is judged by its name."""
    known = programs.MOVES | programs.TOUCHES | programs.OPAQUE | programs.SHELLS | programs.BUILTINS
    return name in known | inner.NAMES or name in programs.CODE_OPTIONS or name in arity.TABLE


def named(word: Word) -> str:
    """The program that a word names: without the folder where programs lie."""
    text = word.text
    if text is None or ANY in text or HOME in text or not text or text != text.strip():
        raise NotUnderstood("the name of a command is known only when it runs")
    if "\n" in text or text in programs.KEYWORDS:
        raise NotUnderstood(f"{text[:40]!r} is not understood as a command")
    for folder in programs.FOLDERS:
        if text.startswith(folder) and "/" not in text[len(folder) :]:
            return text[len(folder) :]
    return text


class Simple:
    """The simple commands of one place in a walk. `again`: it may run several times."""

    def __init__(self, walk: "Walk", found: Found, *, again: bool) -> None:
        self._walk = walk
        self._found = found
        self._again = again

    def command(
        self, words: Sequence[Word], assigned: Sequence[str] = (), written: Sequence[str] = ()
    ) -> None:
        """Judge a command with what is assigned before it, and the redirections after it."""
        name = named(words[0])
        self._check(name, words[1:])
        if name in programs.MOVES:
            self._go(name, words[1:])
            return
        run = inner.inner(name, words)
        text = " ".join((*assigned, *(each.source for each in words), *written))
        if run.harmless and run.words:
            before = len(self._found.patterns)
            self.command(run.words, (), written)
            self._also(before, text)
            return
        if name not in _SILENT or assigned:
            self._found.pattern(self._pattern(name, words, assigned, text, run))
        self._paths(name, words)
        if run.words:
            self.command(run.words)
        if run.script is not None:
            self._walk.read(run.script)

    def _also(self, start: int, text: str) -> None:
        """Give what was found since `start` another spelling: with what stands before it."""
        for index in range(start, len(self._found.patterns)):
            each = self._found.patterns[index]
            aliases = (*each.aliases, text)
            self._found.patterns[index] = msgspec.structs.replace(each, aliases=aliases)

    def _pattern(
        self, name: str, words: Sequence[Word], assigned: Sequence[str], text: str, run: inner.Inner
    ) -> Pattern:
        plain = " ".join((name, *(each.shown for each in words[1:])))
        spelled = " ".join(each.source for each in words)
        aliases = [plain] if plain != spelled or assigned else []
        aliases += [f"{name} {' '.join(each.shown for each in run.meant)}"] if run.meant else []
        aliases += [" ".join(each.shown for each in run.launched)] if run.launched else []
        texts = [name, *(each.text or "" for each in words[1:])]
        first = arity.prefix(texts)
        # Only a beginning that is written plainly can be approved for good.
        sources = [each.source for each in words[: len(first)]]
        plainly = all(sources) and not set("*?$`\\\"'") & set("".join(sources))
        always: str | None = None
        is_code = (
            name in arity.INTERPRETERS and texts[1:2] != ["-m"] and texts[1:2] and texts[1][:1] in ("", "-")
        )
        if run.words or run.script is not None or run.meant or is_code:
            always = None if set("*?") & set(text) else text
        elif plainly:
            always = " ".join((*assigned, *sources, "*"))
            always = None if set("*?") & set("".join(assigned)) else always
        return Pattern(text=text, aliases=tuple(dict.fromkeys(aliases)), always=always)

    def _paths(self, name: str, words: Sequence[Word]) -> None:
        text = words[0].text
        if text is not None and "/" in text and name == text:
            self._found.mention(text)
        ended = False
        for each in words[1:]:
            ended = ended or each.source == "--"
            for one in each.texts if each.texts is not None else (None,):
                is_option = one is not None and one.startswith("-") and not ended
                if name not in programs.TOUCHES or is_option:
                    if one is not None:
                        self._found.mention(one)
                elif name == "dd" and one is not None:
                    self._found.touch(one.partition("=")[2] or one, each.source)
                else:
                    self._found.touch(one, each.source)

    def _go(self, name: str, words: Sequence[Word]) -> None:
        places = [each for each in words if each.source not in ("-P", "-L", "-e", "--", "-n")]
        if name == "popd" or (name == "pushd" and not places):
            return  # To a folder that it has been in.
        if len(places) > 1:
            raise NotUnderstood(f"{name} with several folders is not understood")
        if not places:
            self._found.go(HOME, name, again=self._again)
            return
        source, texts = places[0].source, places[0].texts
        for text in texts if texts is not None and source != "-" else (None,):
            self._found.go(text, f"{name} {source}", again=self._again)

    def _check(self, name: str, words: Sequence[Word]) -> None:
        """Refuse what runs a text as code, or changes the meaning of what follows."""
        if name in programs.OPAQUE or name in _DECLARES:
            raise NotUnderstood(f"{name} is not understood")
        if name == "set":
            _check_set(words)
        if name in programs.WRITES_VARIABLES or (name == "printf" and words and words[0].source[:2] == "-v"):
            _check_names(name, words)
        if name in ("test", "[") and any(each.text in ("-v", "-R") for each in words):
            raise NotUnderstood("the name of a variable is evaluated as code")
        options = programs.CODE_OPTIONS.get(name, ())
        for each in words:
            if options and any(_is_option(text, options) for text in each.fixed or ()):
                raise NotUnderstood(f"an option of {name} may run another program")


def _is_option(text: str, options: tuple[str, ...]) -> bool:
    """Whether a word is one of the options; programs take a long one that is cut short, too."""
    name = text.partition("=")[0]
    is_cut = name.startswith("--") and name != "--" and any(each.startswith(name) for each in options)
    return is_cut or text.startswith(options)


def _check_set(words: Sequence[Word]) -> None:
    texts = [each.text for each in words]
    for index, text in enumerate(texts):
        if text is not None and index and (texts[index - 1] or "")[-1:] == "o":
            if text in programs.SET_OPTIONS:
                continue
        elif text is not None and text[:1] in ("-", "+") and set(text[1:]) <= programs.SET_FLAGS | {"o"}:
            continue
        raise NotUnderstood("set is not understood")


def _check_names(name: str, words: Sequence[Word]) -> None:
    for each in words:
        text = each.text
        if text is None or "[" in each.shown or ANY in text or text.startswith("-C"):
            raise NotUnderstood(f"the variable of {name} is known only when it runs")
        if variables.is_name(text) and not variables.is_plain(text):
            raise NotUnderstood(f"{name} changes a variable that programs read")
