"""The record of shell text from its syntax tree, where the grammar and a shell differ as a shell reads it.

What a shell could read otherwise than the grammar is reported as an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.access.shell_syntax import (
    Assignment,
    Group,
    Item,
    Mark,
    MarkKind,
    Redirection,
    Script,
    SimpleCommand,
    Word,
)

if TYPE_CHECKING:
    from tree_sitter import Node

HERE_DOCUMENT = re.compile(r"<<(-?)[ \t]*(?:'([\w.-]+)'|\"([\w.-]+)\"|\\?([\w.-]+))", re.ASCII)
"""The beginning of a here-document: the dash, and the delimiter in one of three groups."""
_SEPARATORS = frozenset([";", "&", "&&", "||", "|", "|&", ";;", ";&", ";;&", "\n"])
_GROUPS = {
    "subshell": "(",
    "compound_statement": "{",
    "if_statement": "if",
    "while_statement": "while",
    "for_statement": "for",
    "c_style_for_statement": "for",
    "case_statement": "case",
    "function_definition": "function",
}
_PARTS = frozenset(["do_group", "elif_clause", "else_clause", "case_item"])
_REDIRECTIONS = frozenset(["file_redirect", "heredoc_redirect", "herestring_redirect"])
_STATEMENTS = frozenset(
    [
        "command",
        "list",
        "pipeline",
        "redirected_statement",
        "negated_command",
        "declaration_command",
        "unset_command",
        "test_command",
        "variable_assignment",
        "variable_assignments",
        "ERROR",
    ]
) | frozenset(_GROUPS)
_WORDS = frozenset(
    [
        "word",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "number",
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "concatenation",
        "brace_expression",
        "extglob_pattern",
        "regex",
        "variable_name",
        "special_variable_name",
        "test_operator",
        "array",
    ]
)
_EXPANSIONS: dict[str, MarkKind] = {
    "simple_expansion": "variable",
    "expansion": "variable",
    "arithmetic_expansion": "arithmetic",
    "command_substitution": "command",
    "process_substitution": "process",
    "brace_expression": "braces",
    "array": "variable",
}
_SUBSTITUTIONS = frozenset(["command_substitution", "process_substitution"])
_OPAQUE = frozenset(["string", "raw_string", "ansi_c_string", "heredoc_body", "comment", "regex"])
"""Nodes whose text between their children is theirs, not blank."""
_BRACES = re.compile(r"\{(?=[^\s{}]*+\})[^\s{}]*?(?:,|\.\.)[^\s{}]*+\}")
_BRACKETS = re.compile(r"\[[^\]]++\]")
_QUOTES = re.compile(r"['\"\\]")
_BACKTICKS = re.compile(r"(?<!\\)(?:\\\\)*`((?:[^`\\]|\\.)*)(?:`|\Z)", re.DOTALL)
_IN_BACKTICKS = re.compile(r"\\([\\`$])")
_EXPANSION = re.compile(r"(?<!\\)(?:\\\\)*\$[\w({\[@*#?$!-]")
_BLANK = re.compile(r"(?:[ \t\n]|\\\n)*")
_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.S
)
_ANSI_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


class _Parts(Struct):
    """A word while it is read; ``shape`` is ``text`` with every quoted character as ``_``."""

    text: list[str] = field(default_factory=list)
    shape: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    nested: list[Script] = field(default_factory=list)

    def add(self, text: str, *, quoted: bool) -> None:
        self.text.append(text)
        self.shape.append("_" * len(text) if quoted else text)


class TreeReader:
    """Makes the record of one text from its syntax tree."""

    def __init__(self, text: str, parse: Callable[[str], Script]) -> None:
        self._text = text
        self._parse = parse
        self.separators: list[Mark] = []
        self.comments: list[Mark] = []
        self.errors: list[Mark] = []

    # Statements

    def statements(self, nodes: Sequence[Node], operator: str = "") -> list[Item]:
        """The commands of a list of statements, each with the operator before it."""
        items: list[Item] = []
        for node in nodes:
            if node.type in _SEPARATORS:
                operator = node.type if items else operator
            elif node.is_named and node.type != "comment":
                items += self._statement(node, operator)
                operator = ";" if items else operator
        return items

    def _statement(self, node: Node, operator: str) -> list[Item]:
        kind = node.type
        if kind == "command":
            return self._command(node, operator)
        if kind == "list":
            return self._list(node, operator)
        if kind in ("pipeline", "negated_command", "program"):
            return self.statements(node.children, operator)
        if kind == "redirected_statement":
            body = node.child_by_field_name("body")
            items = self._statement(body, operator) if body is not None else []
            items = items or [SimpleCommand((), operator=operator)]
            return self._redirected(items, [c for c in node.children if c.type in _REDIRECTIONS])
        if kind in _GROUPS:
            return self._group(node, operator)
        if kind == "variable_assignment":
            return [SimpleCommand((), (self._assignment(node),), operator=operator)]
        if kind == "variable_assignments":
            assigned = tuple(self._assignment(child) for child in node.named_children)
            return [SimpleCommand((), assigned, operator=operator)]
        if kind in ("declaration_command", "unset_command", "test_command"):
            leaves = [leaf for child in node.children for leaf in _word_nodes(child)]
            assigned = tuple(
                self._assignment(leaf) for leaf in leaves if leaf.type == "variable_assignment"
            )
            return [SimpleCommand(self._words(leaves), assigned, operator=operator)]
        return self._salvaged(node, operator)

    def _list(self, node: Node, operator: str) -> list[Item]:
        rights: list[tuple[str, Node]] = []
        while node.type == "list" and node.child_count >= 3:  # a loop: lists nest to the left
            rights.append((node.children[1].type, node.children[-1]))
            node = node.children[0]
        items = self._statement(node, operator)
        for sign, right in reversed(rights):
            items += self._statement(right, sign)
        return items

    def _command(self, node: Node, operator: str) -> list[Item]:
        words: list[Node] = []
        redirections: list[Node] = []
        assignments: list[Assignment] = []
        nested: list[Item] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            elif child.type in _REDIRECTIONS:
                redirections.append(child)
            elif child.type == "command_name":
                words += child.children
            elif child.type in ("subshell", "ERROR"):
                self.errors.append(Mark("error", self._source(child)[:40], child.start_byte))
                nested += self._statement(child, ";")
            elif child.type != "comment":
                words.append(child)
        command = SimpleCommand(self._words(words), tuple(assignments), operator=operator)
        return [*self._redirected([command], redirections), *nested]

    def _group(self, node: Node, operator: str) -> list[Item]:
        words: list[Node] = []
        items: list[Item] = []
        redirections: list[Node] = []
        stack = list(reversed(node.children))
        before = ""
        while stack:
            child = stack.pop()
            if child.type in _PARTS:
                stack += reversed(child.children)
                before = ";" if items else ""
            elif child.type in _REDIRECTIONS:
                redirections.append(child)
            elif child.type in _STATEMENTS:
                if child.type == "ERROR":
                    self.errors.append(Mark("error", self._source(child)[:40], child.start_byte))
                items += self._statement(child, before)
                before = ";"
            elif child.type in _SEPARATORS:
                before = child.type if items else ""
            elif child.is_named and child.type != "comment":
                words.append(child)
        kind = _GROUPS[node.type]
        if node.children and node.children[0].type in ("until", "select", "(("):
            kind = node.children[0].type
        group = Group(kind, self._words(words), tuple(items), operator=operator)
        return self._redirected([group], redirections)

    def _salvaged(self, node: Node, operator: str) -> list[Item]:
        """Whatever commands can still be read in a part that does not parse."""
        items: list[Item] = []
        words: list[Node] = []

        def finish() -> None:
            if words:
                items.append(SimpleCommand(self._words(words), operator=operator))
                words.clear()

        for child in node.children or [node]:
            if child.type in _WORDS or child.type == "command_name":
                words += child.children if child.type == "command_name" else [child]
                continue
            if child.type in _REDIRECTIONS:
                finish()
                target = items or [SimpleCommand((), operator=operator)]
                items = self._redirected(target, [child])
                continue
            finish()
            if child.type in _STATEMENTS and child != node:
                items += self._statement(child, operator)
            operator = child.type if child.type in _SEPARATORS and items else operator
        finish()
        return items

    # Redirections

    def _redirected(self, items: list[Item], nodes: Sequence[Node]) -> list[Item]:
        """``items`` with redirections at the last of them, and with what follows a here-document.

        The grammar gives the redirection of ``a && b > c`` to the whole list, takes the words behind a
        target for more targets, and keeps the rest of a line inside its here-document.
        """
        redirections: list[Redirection] = []
        extra: list[Node] = []
        after: list[Item] = []
        pending = list(nodes)
        while pending:
            node = pending.pop(0)
            operator = next((c.type for c in node.children if c.type[0] in "<>&"), "<")
            named = [c for c in node.children if c.is_named and c.type != "file_descriptor"]
            if node.type == "heredoc_redirect":
                sign = ""
                body = start = end = None
                for child in node.children:
                    if child.type == "heredoc_start":
                        start = child
                    elif child.type == "heredoc_body":
                        body = child
                    elif child.type == "heredoc_end":
                        end = child
                    elif child.type in _REDIRECTIONS:
                        pending.append(child)
                    elif child.type in _SEPARATORS:
                        sign = child.type
                    elif child.type in _STATEMENTS:
                        after += self._statement(child, sign or "|")
                    elif child.type in _WORDS:
                        extra.append(child)
                target = self._delimiter(start, node.start_byte)
                redirection = Redirection(
                    operator, target, self._here_document(operator, body, start)
                )
                self._check_here_document(redirection, end)
                redirections.append(redirection)
            elif node.type == "file_redirect" and operator.endswith(
                "-"
            ):  # it closes a descriptor and has no target
                redirections.append(Redirection(operator[:-1], Word("-", node.start_byte)))
                extra += named
            elif named:
                count = 1
                while count < len(named) and self._touches(named[count - 1], named[count]):
                    count += 1
                redirections.append(Redirection(operator, self._word(named[:count])))
                extra += named[count:]
        last = items[-1]
        joined = (*last.redirections, *redirections)
        if isinstance(last, SimpleCommand):
            words = sorted((*last.words, *self._words(extra)), key=lambda word: word.start)
            last = replace(last, words=tuple(words), redirections=joined)
        else:
            last = replace(last, redirections=joined)
        return [*items[:-1], last, *after]

    def _here_document(self, operator: str, node: Node | None, start: Node | None) -> Word:
        if node is None:
            return Word("", 0)
        text = self._text[self._text.rfind("\n", 0, node.start_byte) + 1 : node.end_byte]
        text = text.rstrip("\t") if operator == "<<-" else text
        nested = tuple(self._nested(node))
        marks = tuple(
            Mark(_EXPANSIONS[child.type], self._source(child), child.start_byte)
            for child in node.children
            if child.type in _EXPANSIONS
        )
        if start is None or not _QUOTES.search(self._source(start)):
            # The grammar has no backticks in a here-document; a shell runs them.
            for match in _BACKTICKS.finditer(text):
                inner = self._parse(_IN_BACKTICKS.sub(r"\1", match[1]))
                marks += (Mark("command", match[0], node.start_byte),)
                nested += (Script(inner.items, errors=inner.errors),)
            if not marks and (expansion := _EXPANSION.search(text)):
                marks = (Mark("variable", expansion[0], node.start_byte),)
        return Word(text.removesuffix("\n"), node.start_byte, marks, nested)

    def _delimiter(self, node: Node | None, start: int) -> Word:
        source = "" if node is None else self._source(node)
        match = HERE_DOCUMENT.fullmatch(f"<<{source}")
        if match is None:
            self.errors.append(Mark("error", source or "<<", start))
        return Word(source if match is None else match[2] or match[3] or match[4], start)

    def _check_here_document(self, document: Redirection, end: Node | None) -> None:
        """Add an error where a shell would end the here-document at another line."""
        tabs = "\t" if document.operator == "<<-" else ""
        delimiter, body = document.target.text, document.body
        place = document.target.start if end is None else end.start_byte
        first, last = self._text.rfind("\n", 0, place) + 1, self._text.find("\n", place)
        line = self._text[first : last if last >= 0 else None]
        lines = [] if body is None else body.text.split("\n")
        before = any(
            each.lstrip(tabs) == delimiter if tabs else each == delimiter for each in lines
        )
        if before or (line.lstrip(tabs) if tabs else line) != delimiter:
            self.errors.append(Mark("error", f"the end of {delimiter}", place))

    # Words

    def _assignment(self, node: Node) -> Assignment:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        word = Word("", node.end_byte) if value is None else self._word([value])
        if re.compile(r"\\\n\S").match(self._text, node.end_byte):
            # A shell reads on; the grammar takes the next line for a command of its own.
            self.errors.append(Mark("error", "\\\n", node.end_byte))
        return Assignment("" if name is None else self._source(name), word)

    def _words(self, nodes: Sequence[Node]) -> tuple[Word, ...]:
        """The words of ``nodes``; nodes with no blank between them are one word."""
        groups: list[list[Node]] = []
        for node in nodes:
            if groups and self._touches(groups[-1][-1], node):
                groups[-1].append(node)
            elif node.end_byte > node.start_byte:
                groups.append([node])
        return tuple(map(self._word, groups))

    def _touches(self, left: Node, right: Node) -> bool:
        """Whether a shell reads both as one word: it drops a line continuation between them."""
        between = self._text[left.end_byte : right.start_byte]
        return left.end_byte <= right.start_byte and not between.replace("\\\n", "")

    def _word(self, nodes: Sequence[Node]) -> Word:
        parts = _Parts()
        self._read_parts(nodes, parts)
        start, shape = nodes[0].start_byte, "".join(parts.shape)
        if shape.startswith("~"):
            parts.marks.append(Mark("tilde", "~", start))
        if braces := _BRACES.search(shape):
            parts.marks.append(Mark("braces", braces[0], start))
        # Up to the last bracket that closes: each that opens before it is closed.
        if brackets := _BRACKETS.search(shape, 0, shape.rfind("]") + 1):
            parts.marks.append(Mark("brackets", brackets[0], start))
        return Word("".join(parts.text), start, tuple(parts.marks), tuple(parts.nested))

    def _read_parts(self, nodes: Sequence[Node], parts: _Parts) -> None:
        for place, node in enumerate(nodes):
            kind, source = node.type, self._source(node)
            if kind in _EXPANSIONS:
                self._read_expansion(node, parts)
            elif kind == "raw_string":
                parts.add(source[1:-1], quoted=True)
            elif kind == "ansi_c_string":
                parts.marks.append(Mark("ansi", source, node.start_byte))
                parts.add(_ANSI.sub(_ansi_character, source[2:-1]), quoted=True)
            elif kind == "string":
                self._read_string(node, parts)
            elif kind == "$" and nodes[place + 1 :] and nodes[place + 1].type == "string":
                parts.marks.append(Mark("translated", '$"', node.start_byte))
            elif kind == "variable_assignment":
                value = node.child_by_field_name("value")
                end = node.end_byte if value is None else value.start_byte
                parts.add(self._text[node.start_byte : end], quoted=True)
                self._read_parts([] if value is None else [value], parts)
            elif kind in ("concatenation", "translated_string") and node.child_count:
                self._read_parts(node.children, parts)
            else:
                self._read_unquoted(source, node.start_byte, parts)
                parts.nested += self._nested(node) if node.child_count else []

    def _read_expansion(self, node: Node, parts: _Parts) -> None:
        source = self._source(node)
        start = node.start_byte + len(source) - len(source.lstrip())
        parts.marks.append(Mark(_EXPANSIONS[node.type], source.lstrip(), start))
        parts.add(source, quoted=True)
        substitutes = node.type in _SUBSTITUTIONS
        parts.nested += [self._substitution(node)] if substitutes else self._nested(node)

    def _read_unquoted(self, source: str, start: int, parts: _Parts) -> None:
        place = 0
        while place < len(source):
            character = source[place]
            if character == "\\":
                escaped = source[place + 1 : place + 2]
                if escaped in ("", "\n"):
                    parts.marks.append(Mark("continuation", "\\\n", start + place))
                else:
                    parts.add(escaped, quoted=True)
                place += 2
                continue
            if character in "*?":
                parts.marks.append(Mark("glob", character, start + place))
            parts.add(character, quoted=False)
            place += 1

    def _read_string(self, node: Node, parts: _Parts) -> None:
        place = node.start_byte + 1
        for child in node.children:
            if child.type in _EXPANSIONS:
                self._read_quoted(place, child.start_byte, parts)
                self._read_expansion(child, parts)
                place = child.end_byte
        self._read_quoted(place, node.end_byte - 1, parts)

    def _read_quoted(self, start: int, end: int, parts: _Parts) -> None:
        """Inside double quotes a backslash escapes only these; anywhere else it stands for itself."""
        place = start
        while place < end:
            character, escaped = self._text[place], self._text[place + 1 : min(place + 2, end)]
            if character == "\\" and escaped == "\n":
                parts.marks.append(Mark("continuation", "\\\n", place))
                place += 2
            elif character == "\\" and escaped and escaped in '"\\$`':
                parts.add(escaped, quoted=True)
                place += 2
            else:
                parts.add(character, quoted=True)
                place += 1

    def _nested(self, node: Node) -> list[Script]:
        """The scripts of all substitutions inside ``node``."""
        scripts = []
        stack = list(reversed(node.children))
        while stack:
            child = stack.pop()
            if child.type in _SUBSTITUTIONS:
                scripts.append(self._substitution(child))
            else:
                stack += reversed(child.children)
        return scripts

    def _substitution(self, node: Node) -> Script:
        source = self._source(node).strip()
        if source.startswith("`") and "\\" in source:
            # A shell removes these backslashes before it reads what the backticks hold.
            inner = self._parse(_IN_BACKTICKS.sub(r"\1", source[1:-1]))
            self.errors += inner.errors
            return Script(inner.items)
        nodes = node.children[1:-1]
        redirected = [child for child in nodes if child.type in _REDIRECTIONS]  # $(<file)
        items = self.statements([child for child in nodes if child.type not in _REDIRECTIONS])
        if redirected:
            items = self._redirected(items or [SimpleCommand(())], redirected)
        return Script(tuple(items))

    # The whole text

    def check(self, root: Node) -> None:
        """Collect separators, comments and errors; every character must belong to a leaf or be blank."""
        regions = [root]
        if root.type == "ERROR":
            self.errors.append(Mark("error", self._text, 0))
        while regions:
            region = regions.pop()
            stack = list(reversed(region.children)) or [region]
            end = 0 if region is root else region.start_byte
            while stack:
                node = stack.pop()
                if node.type == "ERROR" or node.is_missing:
                    source = self._source(node) or self._text[node.start_byte :]
                    self.errors.append(Mark("error", source, node.start_byte))
                if node.child_count and node.type not in _OPAQUE:
                    stack += reversed(node.children)
                    continue
                self._check_gap(end, node.start_byte)
                end = max(end, node.end_byte)
                if node.type in _SEPARATORS:
                    self.separators.append(Mark("separator", node.type, node.start_byte))
                elif node.type == "comment":
                    self.comments.append(Mark("comment", self._source(node), node.start_byte))
                elif node.type in _OPAQUE:
                    regions += _substitution_nodes(node)
            self._check_gap(end, len(self._text) if region is root else region.end_byte)

    def _check_gap(self, start: int, end: int) -> None:
        gap = self._text[start:end] if start < end else ""
        if not gap or (gap.isspace() and not gap.strip(" \t")):
            return
        blank = _BLANK.match(gap)
        read = 0 if blank is None else blank.end()
        for match in re.finditer(r"\\?\n", gap[:read]):
            kind: MarkKind = "continuation" if match[0] == "\\\n" else "separator"
            self.separators.append(Mark(kind, match[0], start + match.start()))
        if read < len(gap):
            self.errors.append(Mark("error", gap[read:], start + read))

    def _source(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte]


def _word_nodes(node: Node) -> Iterator[Node]:
    """The words in an expression of ``[[ ]]`` or the arguments of ``export``."""
    if node.type in _WORDS or node.type == "variable_assignment" or not node.child_count:
        yield node
    else:
        for child in node.children:
            yield from _word_nodes(child)


def _substitution_nodes(node: Node) -> list[Node]:
    substitutions, stack = [], list(node.children)
    while stack:
        child = stack.pop()
        if child.type in _SUBSTITUTIONS:
            substitutions.append(child)
        else:
            stack += child.children
    return substitutions


def _ansi_character(match: re.Match[str]) -> str:
    """The character that an escape in ``$'…'`` stands for."""
    for digits, base in ((match[1] or match[2] or match[3], 16), (match[4], 8)):
        if digits:
            code = int(digits, base)
            return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    if match[5]:
        return chr(ord(match[5]) & 0x1F)
    return _ANSI_LETTERS.get(match[6], match[6])
