"""Markdown that hides nothing: rendered for reading, safe for deciding.

Markdown from a model may show one address and link to another, drop HTML comments, fetch images or
smuggle characters in as entities. :class:`SafeMarkdown` shows link targets and image addresses as
text, shows HTML as it is written, and cleans every piece of text after parsing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token as MarkdownToken
from pygments.token import Token  # type: ignore[import-untyped]  # it ships no types
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.highlight import HighlightTheme, highlight
from textual.widget import Widget
from textual.widgets import Markdown
from textual.widgets._markdown import (  # the table's parts have no public names
    MarkdownBlock,
    MarkdownFence,
    MarkdownTable,
    MarkdownTableContent,
)

from widgets.conversation.markdown_lists import BulletList, OrderedList
from widgets.text.clean import clean
from widgets.text.style_names import BAD, DIM, GOOD

_WORD = re.compile(r"\w+")
_LANGUAGE = re.compile(r"[\w+#.-]{1,24}")


def parser() -> MarkdownIt:
    """Return the parser for untrusted Markdown: GitHub's dialect without HTML and references."""
    markdown = MarkdownIt("gfm-like", {"html": False, "linkify": False})
    markdown.disable("reference")
    markdown.core.ruler.push("plain", _plain)
    return markdown


def renders_every_word(source: str) -> bool:
    """Return True when rendered Markdown shows every word of ``source``.

    Some constructions show less than their source (cells beyond a table's last column). A text that
    the user approves is then shown as its source.
    """
    shown = Counter(_WORD.findall(" ".join(_texts(parser().parse(clean(source))))))
    return not Counter(_WORD.findall(clean(source))) - shown


def _texts(tokens: Iterable[MarkdownToken]) -> Iterator[str]:
    for token in tokens:
        if token.children is not None:
            yield "".join(_inline(token.children))
        elif token.type in ("fence", "code_block"):
            yield token.info
            yield token.content
        elif token.type == "ordered_list_open":
            yield str(token.attrs.get("start", 1))
        elif token.type == "list_item_open":
            yield token.info


def _inline(children: Iterable[MarkdownToken]) -> Iterator[str]:
    for child in children:
        yield " " if child.type in ("softbreak", "hardbreak") else child.content


def _plain(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("fence", "code_block"):
            token.content = clean(token.content)
            info = clean(token.info, newlines=False).strip()
            if info and not _LANGUAGE.fullmatch(info):
                token.content = f"{info}\n{token.content}"
                info = ""
            token.info = info or "text"
        elif token.children is not None:
            token.children = list(_shown(_with_identifiers(token.children)))


def _with_identifiers(children: list[MarkdownToken]) -> list[MarkdownToken]:
    """Give underscores back to identifiers: ``__init__`` is a name and no bold "init".

    Underscores around one word are text; around several words they mark emphasis.
    """
    shown = list(children)
    opened: list[int] = []
    for place, child in enumerate(children):
        if child.type not in ("em_open", "em_close", "strong_open", "strong_close"):
            continue
        if child.type.endswith("_open"):
            opened.append(place)
            continue
        first = opened.pop()
        marked = "".join(_inline(children[first + 1 : place]))
        if child.markup[:1] == "_" and not any(letter.isspace() for letter in marked):
            shown[first], shown[place] = _text(child.markup), _text(child.markup)
    return shown


def _shown(children: Iterable[MarkdownToken]) -> Iterator[MarkdownToken]:
    targets: list[tuple[str, int]] = []
    text = ""
    for child in children:
        if child.type == "link_open":
            targets.append((_target(child, "href"), len(text)))
        elif child.type == "link_close":
            target, start = targets.pop()
            if target and text[start:].strip() != target:
                yield _text(f" ({target})")
        elif child.type == "image":
            alt = clean("".join(_inline(child.children or ())), newlines=False)
            yield _text(f"[image: {alt}] ({_target(child, 'src')})")
        else:
            if child.content:
                child.content = clean(child.content, newlines=False)
                text += child.content
            yield child


def _target(token: MarkdownToken, name: str) -> str:
    address = clean(str(token.attrs.get(name, "")), newlines=False)
    title = clean(str(token.attrs.get("title", "") or ""), newlines=False)
    return f"{address} “{title}”" if title else address


def _text(content: str) -> MarkdownToken:
    return MarkdownToken("text", "", 0, content=content)


class _TableContent(MarkdownTableContent):
    """A table whose cells have no tooltips: Textual would parse theirs as markup."""

    def compose(self) -> ComposeResult:
        for child in super().compose():
            if isinstance(child, Widget):
                child.tooltip = None
            yield child


class _Table(MarkdownTable):
    def compose(self) -> ComposeResult:
        self._headers, self._rows = self._get_headers_and_rows()
        yield _TableContent(self._headers, self._rows)

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        # A row that turns out to begin another block leaves the table shorter than it was, which
        # Textual's own update cannot do.
        if isinstance(block, MarkdownTable):
            _, rows = block._get_headers_and_rows()
            if len(rows) >= len(self._rows):
                await super()._update_from_block(block)
                return
        await MarkdownBlock._update_from_block(self, block)


class _CodeTheme(HighlightTheme):
    STYLES = {  # noqa: RUF012 -- as its parent has it
        **HighlightTheme.STYLES,
        Token.Generic.Inserted: GOOD,
        Token.Generic.Deleted: BAD,
        Token.Generic.Error: BAD,
        Token.Error: BAD,
        Token.Comment: DIM,
    }


class _Fence(MarkdownFence):
    """Code in the colours of the theme; added and removed lines of a diff in theirs."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        language = language or "text"  # else it would be guessed, with all lexers of Pygments
        if ansi:
            return super().highlight(code, language, ansi, dark)
        return highlight(code, language=language, theme=_CodeTheme)


class SafeMarkdown(Markdown):
    """Textual's Markdown for untrusted text. Links are text; nothing is opened by a click."""

    DEFAULT_CSS = """
    SafeMarkdown { padding: 0; }
    """
    BLOCKS = {  # noqa: RUF012 -- as its parent has it
        **Markdown.BLOCKS,
        "table_open": _Table,
        "fence": _Fence,
        "code_block": _Fence,
        "bullet_list_open": BulletList,
        "ordered_list_open": OrderedList,
    }

    def __init__(self, source: str = "", *, classes: str | None = None) -> None:
        super().__init__(clean(source), parser_factory=parser, open_links=False, classes=classes)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # The last block's margin would leave a gap. A :last-child rule costs a restyling of every
        # block for each new one.
        height = super().get_content_height(container, viewport, width)
        return max(1, height - self.children[-1].styles.margin.bottom) if self.children else height
