"""Walks over the tree of a command and collects what it would do.

What must stay true: whatever the shell would run is found, or the command is not understood. So the kinds of
nodes that are followed are listed, and any other ends the reading; a substitution that the parser passed over
in some text ends it too.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from holdfast.permission.shell import lexis, simple, syntax, variables, word
from holdfast.permission.shell.found import Found
from holdfast.permission.shell.reading import Pattern
from holdfast.permission.shell.syntax import NotUnderstood, Parsed
from holdfast.permission.shell.word import HOME, Texts, Word

if TYPE_CHECKING:
    from tree_sitter import Node

NESTED_MAX: Final = 4
"""How many shells may be started in one another (`sh -c "sh -c …"`)."""

_STRUCTURE: Final = frozenset(
    (
        "array", "case_item", "case_statement", "command_name", "concatenation", "do_group", "elif_clause",
        "else_clause", "heredoc_redirect", "if_statement", "list", "negated_command", "pipeline", "program",
        "string", "variable_assignments",
    )
)  # fmt: skip
_SCOPES: Final = frozenset(("subshell", "command_substitution", "process_substitution"))
_LEAVES: Final = frozenset(
    (
        "brace_expression", "extglob_pattern", "file_descriptor", "heredoc_content", "heredoc_end",
        "heredoc_start", "number", "regex", "special_variable_name", "string_content", "test_operator",
        "variable_name", "word",
    )
)  # fmt: skip
_QUOTED: Final = frozenset(("raw_string", "ansi_c_string"))
_EXPANSION_SIGNS: Final = frozenset(
    ("${", "}", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", ":-", "-", ":+", "+",
     ":?", "?", ":=", "=")
)  # fmt: skip
_ASSIGNS: Final = frozenset((":=", "="))
_HIDDEN = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[({\[])")
_NUMBERS: Final = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_EXPRESSIONS: Final = frozenset(("binary_expression", "unary_expression", "parenthesized_expression"))
_COMPUTED: Final = frozenset(
    (*_EXPRESSIONS, "postfix_expression", "ternary_expression", "simple_expansion", "string",
     "variable_assignment")
)  # fmt: skip
_WORDS: Final = frozenset(
    (
        "ansi_c_string", "arithmetic_expansion", "brace_expression", "command_substitution", "concatenation",
        "expansion", "number", "process_substitution", "raw_string", "simple_expansion", "string", "word",
    )
)  # fmt: skip
_WRITES: Final = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_BEFORE_COMMENT: Final = b" \t\n;&|()"


class Walk:
    """One command, and the shells that it starts."""

    def __init__(self, directory: str, home: str) -> None:
        self.found = Found(directory, home)
        self._home = home
        self._nested = 0
        self._loops = 0
        self._parsed: Parsed
        self._values: dict[str, Texts] = {}
        self._worded: set[str] = set()

    def read(self, command: str) -> None:
        """Read a command; also one that is given to another shell in it."""
        if self._nested > NESTED_MAX:
            raise NotUnderstood("too many shells are started in one another")
        before = (getattr(self, "_parsed", None), self._values, self._worded)
        self._nested += 1
        self._parsed = syntax.parse(command)
        self._values, self._worded = variables.collect(self._parsed, self._home)
        self._visit(self._parsed.root)
        self._nested -= 1
        if before[0] is not None:
            self._parsed, self._values, self._worded = before[0], before[1], before[2]

    def _visit(self, node: "Node") -> None:
        if not node.is_named:
            return
        lexis.check(self._parsed, node)
        match node.type:
            case "command":
                self._command(node, ())
            case "redirected_statement":
                self._redirected(node)
            case "variable_assignment":
                self._assignment(node)
            case "declaration_command" | "unset_command":
                self._declaration(node)
            case "for_statement" | "c_style_for_statement" | "while_statement" | "function_definition":
                self._repeated(node)
            case "test_command":
                self._test(node)
            case "compound_statement":
                if any(child.type == "((" for child in node.children):
                    self._numbers(node.children)
                else:
                    self._children(node)
            case "arithmetic_expansion":
                self._numbers(node.children)
            case "expansion":
                self._expansion(node)
            case "simple_expansion" | "heredoc_body":
                self._children(node)
                self._text(node, skip=node.children)
            case "file_redirect" | "herestring_redirect":
                self._redirect(node)
            case "comment":
                if node.start_byte and self._parsed.source[node.start_byte - 1] not in _BEFORE_COMMENT:
                    raise NotUnderstood("a comment is not understood")
            case kind if kind in _SCOPES:
                self._scope(node)
            case kind if kind in _STRUCTURE:
                self._children(node)
                if kind == "string":
                    self._text(node, skip=node.children)
            case kind if kind in _LEAVES:
                self._text(node)
            case kind if kind in _QUOTED:
                pass
            case kind:
                raise NotUnderstood(f"{kind.replace('_', ' ')} is not understood")

    def _children(self, node: "Node") -> None:
        quoted = node.type == "heredoc_redirect" and any(
            child.type == "heredoc_start" and set("'\"\\") & set(self._parsed.text(child))
            for child in node.children
        )
        for child in node.children:
            if not (quoted and child.type == "heredoc_body"):
                self._visit(child)

    def _text(self, node: "Node", skip: "list[Node] | None" = None) -> None:
        """Refuse a text in which the shell would find something to run that the tree does not show."""
        at, pieces = node.start_byte, list[bytes]()
        for child in skip or []:
            pieces.append(self._parsed.source[at : child.start_byte])
            at = child.end_byte
        pieces.append(self._parsed.source[at : node.end_byte])
        if any(_HIDDEN.search(piece.decode("utf-8", "replace")) for piece in pieces):
            raise NotUnderstood("a substitution in it is not understood")

    def _scope(self, node: "Node") -> None:
        source = self._parsed.text(node).lstrip()
        if source.startswith("`") and "\\" in source:
            raise NotUnderstood("a substitution in it is not understood")
        loops, self._loops = self._loops, 0
        self._children(node)
        self._loops = loops

    def _repeated(self, node: "Node") -> None:
        named = next((child for child in node.children if child.type in ("variable_name", "word")), None)
        if node.type == "function_definition":
            if named is None or simple.is_known(self._parsed.text(named)):
                raise NotUnderstood("a function takes the name of another command")
        elif node.type == "for_statement":
            if named is None or not variables.is_plain(self._parsed.text(named)):
                raise NotUnderstood("a loop changes a variable that programs read")
        elif node.type == "c_style_for_statement":
            self._numbers([child for child in node.children if child.type != "do_group"])
        self._loops += 1
        for child in node.children:
            if node.type != "c_style_for_statement" or child.type == "do_group":
                self._visit(child)
        self._loops -= 1

    def _assignment(self, node: "Node", *, prefix: bool = False) -> None:
        """An assignment by itself counts as something done, unless the variable is the command's own."""
        target = node.children[0]
        self._children(node)
        name = self._parsed.text(target)
        if target.type != "variable_name" or not variables.is_name(name):
            raise NotUnderstood(f"the index of {name[:40]} is evaluated as code")
        if not prefix and not variables.is_plain(name):
            self.found.pattern(Pattern(text=self._parsed.text(node)))

    def _declaration(self, node: "Node") -> None:
        for child in node.children:
            text = self._parsed.text(child)
            if child.type == "word" and (text not in ("-x", "-r", "-g", "-p", "-a", "-A", "--")):
                raise NotUnderstood(f"{text[:40]} changes how variables are read")
            if child.is_named and child.type not in ("variable_assignment", "variable_name", "word"):
                raise NotUnderstood("the name of a variable is known only when it runs")
            if child.type == "variable_assignment":
                self._assignment(child, prefix=True)
        words = [self._parsed.text(child) for child in node.children]
        names = [self._parsed.text(each) for each in syntax.descendants(node) if each.type == "variable_name"]
        if words[0] not in ("local", "readonly", "declare", "typeset", "unset") or not all(
            map(variables.is_plain, names)
        ):
            self.found.pattern(Pattern(text=" ".join(words), always=" ".join(words)))

    def _redirected(self, node: "Node") -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child != body]
        gaps = [
            self._parsed.source[before.end_byte : after.start_byte]
            for before, after in pairwise(node.children)
        ]
        if body is not None and body.type == "command":
            lexis.check(self._parsed, body)
            # The parser shows a single `-` before a here-document nowhere.
            self._command(body, redirects, [word.literal("-", "-") for gap in gaps if b"-" in gap])
            return
        if any(b"-" in gap for gap in gaps):
            raise NotUnderstood("its syntax is not understood")
        if body is not None:
            self._visit(body)
        for child in redirects:
            if child.type.endswith("_redirect") and _divided(child)[1]:
                raise NotUnderstood("words after a redirection are not understood")
            self._visit(child)

    def _redirect(self, node: "Node") -> None:
        for child in node.children:
            self._visit(child)
        if node.type == "herestring_redirect":
            return
        sign = next(child.type for child in node.children if not child.is_named)
        target = next(iter(_targets(node)), None)
        if target is None or sign.endswith("-"):
            return
        source = self._parsed.text(target)
        if sign in (">&", "<&"):
            if re.fullmatch(r"[0-9]+-?|-", source):
                return
            if not re.fullmatch(r"[A-Za-z_./][\w./-]*", source):
                raise NotUnderstood("a redirection in it is not understood")
        if target.type == "process_substitution":
            return
        self._target(sign, source, word.texts(self._parsed, target, self._values))

    def _target(self, sign: str, source: str, texts: Texts) -> None:
        touched = len(self.found.touched)
        for text in texts if texts is not None else (None,):
            self.found.touch(text, source)
        # A file that is written is something done of its own: who may run `ls` may not write any file.
        if sign in _WRITES and (texts is None or len(self.found.touched) > touched):
            shown = f"> {source}"
            alias = f"> {texts[0]}" if texts and len(texts) == 1 and HOME not in texts[0] else shown
            self.found.pattern(
                Pattern(
                    text=shown,
                    aliases=(alias,) if alias != shown else (),
                    always=None if texts is None or set("*?") & set(source) else shown,
                )
            )

    def _command(self, node: "Node", redirects: "Sequence[Node]", more_words: Sequence[Word] = ()) -> None:
        assigned, words, written = list[str](), list[Word](), list[str]()
        for child in (*node.children, *redirects):
            kind = child.type
            if kind == "variable_assignment":
                self._assignment(child, prefix=True)
                assigned.append(self._parsed.text(child))
            elif kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self._visit(child)
                end, more = _divided(child)
                written.append(self._parsed.source[child.start_byte : end].decode())
                words += map(self._word, more)
            elif not child.is_named or kind == "subshell":
                raise NotUnderstood(f"{self._parsed.text(child)[:40]} is not understood in a command")
            elif kind != "comment":
                self._visit(child)
                words.append(self._word(child))
        if not words:
            for each in assigned:
                self.found.pattern(Pattern(text=each))
            return
        words += more_words
        simple.Simple(self, self.found, again=self._loops > 0).command(words, assigned, written)

    def _word(self, node: "Node") -> Word:
        return Word(
            self._parsed.text(node),
            word.texts(self._parsed, node, self._values),
            word.texts(self._parsed, node, {}),
        )

    def _expansion(self, node: "Node") -> None:
        signs = {child.type.strip() for child in node.children if not child.is_named}
        names = [self._parsed.text(child) for child in node.children if child.type == "variable_name"]
        if not signs <= _EXPANSION_SIGNS or any(child.type == "subscript" for child in node.children):
            raise NotUnderstood("an expansion in it is not understood")
        if signs & _ASSIGNS and not all(map(variables.is_plain, names)):
            raise NotUnderstood("an expansion changes a variable that programs read")
        self._children(node)

    def _test(self, node: "Node") -> None:
        """`[ … ]` and `[[ … ]]`: they run nothing, but evaluate numbers and names of variables as code."""
        is_double = any(child.type == "[[" for child in node.children)
        for each in node.children:
            self._tested(each, is_double=is_double)

    def _tested(self, node: "Node", *, is_double: bool) -> None:
        if node.type == "test_operator" and self._parsed.text(node) in ("-v", "-R"):
            raise NotUnderstood("the name of a variable is evaluated as code")
        if node.type not in _EXPRESSIONS:
            self._visit(node)
            return
        signs = {self._parsed.text(child) for child in node.children if child.type == "test_operator"}
        if is_double and signs & _NUMBERS:
            self._numbers([child for child in node.children if child.type != "test_operator"])
        for child in node.children:
            self._tested(child, is_double=is_double)

    def _numbers(self, nodes: "list[Node]") -> None:
        """Only numbers may be computed with: any other text in a variable would be evaluated as code."""
        for each in (each for node in nodes for each in syntax.descendants(node) if each.is_named):
            text = self._parsed.text(each).strip()
            is_name = each.type == "variable_name" or (each.type == "word" and variables.is_name(text))
            if is_name and variables.is_plain(text) and text not in self._worded:
                continue
            if each.type in ("number", "special_variable_name") or each.type in _COMPUTED:
                continue
            raise NotUnderstood("a variable is evaluated as code")


def _targets(node: "Node") -> "list[Node]":
    return [child for child in node.children if child.is_named and child.type != "file_descriptor"]


def _divided(node: "Node") -> "tuple[int, list[Node]]":
    """Where a redirection ends, and the words behind it that are arguments of the command."""
    if node.type == "heredoc_redirect":
        end = next(child.end_byte for child in node.children if child.type == "heredoc_start")
        return end, [child for child in node.children if child.type in _WORDS]
    targets = _targets(node)
    if any(child.type in ("<&-", ">&-") for child in node.children):
        return node.children[-1].end_byte if not targets else targets[0].start_byte, targets
    return (targets[0].end_byte if targets else node.end_byte), targets[1:]
