"""Tones and band accents: the style names that themes colour.

Spans of content carry these styles as text, ``(text, DIM)``; Textual looks their variables up in
the theme when it draws, so a change of theme recolours everything. The colours themselves are in
the themes. Without the variable in a theme, the text is drawn plain.
"""

from __future__ import annotations

from textual.content import Content

from widgets.text.clean import clean

DIM = "$tone-dim"
STRONG = "bold $tone-strong"
ACCENT = "bold $tone-accent"
GOOD = "$tone-good"
BAD = "$tone-bad"
WARN = "bold $tone-warn"
STRUCK = "strike $tone-dim"
RULE = "$rule"
BADGE = "bold $tone-strong on $cursor-background"
CURSOR = "on $cursor-background"
CODE = "on $code-background"

_TONES = {"dim": DIM, "good": GOOD, "bad": BAD, "warn": WARN, "accent": ACCENT}
_BANDS = ("identity", "objectives", "capabilities", "situational", "exploration", "reserve")

Part = tuple[str, str] | str
"""A piece of a line: text, or text with the name of its style."""


def tone(name: str) -> str:
    """Return the style of a tone (``good``, ``dim``, …); plain for any other name."""
    return _TONES.get(name, "")


def band(name: str) -> str:
    """Return the accent of a budget band; plain for a custom band."""
    return f"$band-{name}" if name in _BANDS else ""


def line(*parts: Part) -> Content:
    """Assemble one line from parts, each cleaned; newlines inside become spaces."""
    return Content.assemble(
        *(
            clean(part, newlines=False)
            if isinstance(part, str)
            else (clean(part[0], newlines=False), part[1])
            for part in parts
        )
    )


def block(text: str, style: str = "") -> Content:
    """Draw ``text`` on as many lines as it has."""
    cleaned = clean(text)
    return Content.styled(cleaned, style) if style else Content(cleaned)


def spread(left: Content, right: Content, width: int) -> Content:
    """Put ``left`` and ``right`` at the two ends of ``width`` cells; ``left`` is cut off first."""
    room = width - right.cell_length - 1
    if room < 1:
        return right.truncate(width, ellipsis=True) if width > 0 else Content("")
    left = left.truncate(room, ellipsis=True)
    return Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)
