"""The languages of code: named by a file's name, and drawn in the colours of the theme."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePath

from pygments.lexers import (  # type: ignore[import-untyped]
    get_all_lexers,
    get_lexer_by_name,
)
from pygments.token import Token  # type: ignore[import-untyped]  # it ships no types
from textual.content import Content
from textual.highlight import HighlightTheme, highlight

from widgets.text.style_names import BAD, DIM, GOOD

PLAIN = "text"


def name_language(code: str, path: str | None) -> str:
    """Return what Pygments calls the language of ``code`` in the file ``path``; ``text`` if it knows none.

    Textual's own guess looks at the text as well, with each of some 250 modules of Pygments: the first diff
    of a screen would wait for a second. Here only the languages that a name may stand for are loaded.
    """
    languages = _languages_of(PurePath(path or "").name)
    if len(languages) < 2:
        return languages[0] if languages else PLAIN
    return max(languages, key=lambda name: _rate(name, code))


def _rate(language: str, code: str) -> tuple[float, float, int]:
    """How well the language fits; of two that fit alike, the one with the shorter name is the usual one."""
    lexer = get_lexer_by_name(language)
    return (lexer.analyse_text(code), lexer.priority, -len(language))


@lru_cache(maxsize=256)
def _languages_of(name: str) -> tuple[str, ...]:
    """List the languages whose files may have the name."""
    if name.endswith(".tcss"):
        return ("scss",)
    return tuple(
        aliases[0]
        for _, aliases, patterns, _ in get_all_lexers(plugins=False)
        if aliases and any(fnmatchcase(name, pattern) for pattern in patterns)
    )


class _Colours(HighlightTheme):
    STYLES = {  # noqa: RUF012 -- as its parent has it
        **HighlightTheme.STYLES,
        Token.Generic.Inserted: GOOD,
        Token.Generic.Deleted: BAD,
        Token.Generic.Error: BAD,
        Token.Error: BAD,
        Token.Comment: DIM,
    }


def colour_code(code: str, language: str) -> Content:
    """Return code in the colours of the theme; added and removed lines of a diff in theirs.

    Without a language it would be guessed, with all lexers of Pygments: it is plain then.
    """
    return highlight(code, language=language or PLAIN, theme=_Colours)
