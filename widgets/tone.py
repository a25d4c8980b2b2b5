"""Tones and band accents as component classes, so that one stylesheet colours every widget.

A widget lists :data:`TONES` (and :data:`BANDS`) in its ``COMPONENT_CLASSES`` and styles spans of
its content by name: ``(text, dim)``. The colours are in the stylesheet, never here.
"""

from __future__ import annotations

from textual.content import Content

from widgets.clean import clean

DIM = ".tone--dim"
STRONG = ".tone--strong"
ACCENT = ".tone--accent"
GOOD = ".tone--good"
BAD = ".tone--bad"
WARN = ".tone--warn"
STRUCK = ".tone--struck"
RULE = ".tone--rule"
BADGE = ".tone--badge"
CURSOR = ".tone--cursor"
CODE = ".tone--code"

TONES = {
    name[1:] for name in (DIM, STRONG, ACCENT, GOOD, BAD, WARN, STRUCK, RULE, BADGE, CURSOR, CODE)
} | {"tone--risk-low", "tone--risk-medium", "tone--risk-high"}

_BAND_NAMES = (
    "identity",
    "objectives",
    "capabilities",
    "situational",
    "exploration",
    "reserve",
)
BANDS = {f"band--{name}" for name in _BAND_NAMES}

Part = tuple[str, str] | str
"""A piece of a line: text, or text with the name of its style."""


def tone(name: str) -> str:
    """The style of a tone as views name it (``good``, ``dim``, …)."""
    style = f".tone--{name}"
    return style if style[1:] in TONES else ""


def band(name: str) -> str:
    """The accent of a budget band; bands with a name of their own are drawn plain."""
    style = f".band--{name}"
    return style if style[1:] in BANDS else ""


def risk(name: str) -> str:
    """The style of a risk word."""
    return tone(f"risk-{name}")


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
    """Draw ``text`` as it stands, over as many lines as it has."""
    cleaned = clean(text)
    return Content.styled(cleaned, style) if style else Content(cleaned)


def spread(left: Content, right: Content, width: int) -> Content:
    """Put ``left`` and ``right`` at the two ends of ``width`` cells; ``left`` gives way."""
    room = width - right.cell_length - 1
    if room < 1:
        return right.truncate(width, ellipsis=True) if width > 0 else Content("")
    left = left.truncate(room, ellipsis=True)
    return Content.assemble(left, " " * (width - left.cell_length - right.cell_length), right)
