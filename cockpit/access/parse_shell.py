"""The one parser of shell text: from a command line to the record of its syntax.

Nothing here runs a command. The grammar is tree-sitter-bash, whose loading takes about 30 ms.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from cockpit.access.shell_syntax import Mark, Script
from cockpit.access.shell_tree import HERE_DOCUMENT, TreeReader

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 200_000
"""Characters of a text that are read; the rest is reported as an error."""
_REMEMBERED, _REMEMBERED_LENGTH = 256, 2_000
"""So many texts of up to so many characters: whoever judges a command parses it several times."""

_REPAIRS = ("'", '"', ")", '")', "`", '`"', "}", '}"')
"""Endings tried on a text that does not parse: capture reads texts that were cut off."""
_NUMBER = re.compile(r"(?<![0-9])[0-9]++(?=[A-Za-z_./=:@%+,-])")
_SIGN = re.compile(r"(?<![$\[{])[@%+](?![(=])")
_DASH = re.compile(r"(?<=[ \t])-(?=[ \t]*<<)")
_COMPARISON = re.compile(r"(?<=[ \t])(?:==|=~)(?=[ \t\n;|&]|$)")


def parse_shell(text: str) -> Script:
    """Parse ``text``. Never raises: what cannot be read is in ``errors``."""
    parse = _parse if len(text) > _REMEMBERED_LENGTH else _parse_and_remember
    try:
        return parse(text)
    except RecursionError:  # depends on the caller as well, so it is not remembered
        return Script(errors=(*_find_unreadable(text), Mark("error", "nesting this deep", 0)))


@cache
def shell_parser() -> Parser:
    import tree_sitter_bash  # here: most calls of a hook judge no command
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _parse(text: str) -> Script:
    errors = _find_unreadable(text)
    text = text[:MAX_LENGTH]
    # The grammar reads a copy of the same length, one byte a character, so that its offsets are ours;
    # the record is made from the text itself. No character beyond ASCII is special to a shell.
    copy = re.sub(r"[^\x01-\x7f]", ",", text)
    copy = _DASH.sub(",", copy)  # which the grammar leaves out before a here-document
    copy = _hide_false_delimiters(copy)
    root, ending = _root(copy)
    if ending:
        errors.append(Mark("error", ending, len(text)))
    reader = TreeReader(text + ending, parse_shell)
    items = reader.statements(root.children)
    reader.check(root)
    return Script(
        tuple(items), tuple(reader.separators), tuple(reader.comments), (*errors, *reader.errors)
    )


_parse_and_remember = lru_cache(maxsize=_REMEMBERED)(_parse)


def _find_unreadable(text: str) -> list[Mark]:
    errors = []
    if len(text) > MAX_LENGTH:
        errors.append(Mark("error", "a text this long", MAX_LENGTH))
    if "\0" in text[:MAX_LENGTH]:
        errors.append(Mark("error", "a NUL character", text.index("\0")))
    return errors


def _hide_false_delimiters(copy: str) -> str:
    """``copy`` with a comma at the start of lines that the grammar alone takes for a delimiter.

    It ends a here-document at any line that begins with the delimiter, blanks before it skipped.
    """
    for dash, *forms in set(HERE_DOCUMENT.findall(copy)):
        delimiter = re.escape("".join(forms))
        blanks = r"\t*" if dash else ""
        line = re.compile(
            rf"^(?!{blanks}{delimiter}$)([ \t\r\f\v]*)(?={delimiter})(.)", re.MULTILINE
        )
        copy = line.sub(r"\1,", copy)
    return copy


def _root(copy: str) -> tuple[Node, str]:
    """The syntax tree, and what was added to the text for it to parse."""
    parser = shell_parser()
    root = parser.parse(copy.encode("ascii")).root_node
    if not root.has_error:
        return root, ""
    # The grammar takes "==" as an argument only before another one, and "1%", "a@" or "a+:" for no word.
    words = _COMPARISON.sub(",,", copy)
    words = _NUMBER.sub(lambda match: "," * len(match[0]), words)
    words = _SIGN.sub(",", words)
    delimiters = [
        f"\n{match[2] or match[3] or match[4]}\n" for match in HERE_DOCUMENT.finditer(copy)
    ][-1:]
    for ending in ("", *delimiters, *_REPAIRS):
        for variant in dict.fromkeys((copy, words)):
            repaired = parser.parse((variant + ending).encode("ascii")).root_node
            if not repaired.has_error:
                return repaired, ending
    return root, ""
