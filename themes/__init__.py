"""Colour themes and the stylesheet of the widgets, as data.

``THEMES`` are the themes that ship, the default first; ``STYLESHEET`` is the path of the stylesheet
for every widget in :mod:`widgets`. The stylesheet asks for variables that Textual's own themes do
not define: :func:`fallbacks` derives them from any theme's colours. Importing this package imports
nothing of Textual; ``THEMES`` is built on first use.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.theme import Theme

_HERE = Path(__file__).parent

STYLESHEET = _HERE / "cockpit.tcss"
"""The stylesheet to load before the application's own."""

DEFAULT = "cockpit-dark"
"""The name of the theme to start with."""

FEW_COLORS = "cockpit-16"
"""The name of the theme for terminals of 16 colours."""

_ORDER = ("cockpit-dark", "cockpit-light", "cockpit-contrast", "cockpit-safe", FEW_COLORS)

THEMES: tuple[Theme, ...]
"""The themes that ship, the default first."""


@cache
def find(name: str) -> Theme | None:
    """Return the theme of this name that ships, or one of Textual's own, mapped; None for another.

    Reads no other theme's file.
    """
    if name in _ORDER:
        return load(_HERE / f"{name}.toml")
    from textual.theme import BUILTIN_THEMES

    theme = BUILTIN_THEMES.get(name)
    if theme is None or "ansi" in name:  # those have no colours of their own
        return theme
    from themes.adapt import adapt

    return adapt(theme, _complete)


def load(path: Path) -> Theme:
    """Read one theme from its TOML file.

    Raises ValueError naming the file and what is wrong with it, OSError when it cannot be read.
    """
    import tomllib

    from textual.color import Color, ColorParseError
    from textual.theme import Theme

    try:
        data = tomllib.loads(path.read_text("utf-8"))
        colors, variables = data["colors"], data.get("variables", {})
        for name, value in {**colors, **variables}.items():
            try:
                Color.parse(str(value))
            except ColorParseError as error:
                raise ValueError(f"{name} = {value!r} is not a colour") from error
        theme = Theme(
            name=data["name"], dark=data["dark"], variables=_complete(colors, variables), **colors
        )
    except KeyError as error:
        raise ValueError(f"theme {path.name}: {error.args[0]} is missing") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"theme {path.name}: {error}") from error
    return theme


def _complete(colors: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
    """Add what follows from a theme's own colours for the parts that Textual draws itself."""
    derived = {
        "text-muted": variables["tone-dim"],
        "text-disabled": variables["tone-dim"],
        "foreground-muted": variables["tone-dim"],
        "border": colors["primary"],
        "border-blurred": variables["rule"],
        "scrollbar": variables["rule"],
        "scrollbar-hover": variables["tone-dim"],
        "scrollbar-active": colors["primary"],
        "scrollbar-background": colors["background"],
        "scrollbar-background-hover": colors["background"],
        "scrollbar-background-active": colors["background"],
        "scrollbar-corner-color": colors["background"],
        "block-cursor-foreground": variables["tone-strong"],
        "block-cursor-background": variables["cursor-background"],
        "block-cursor-blurred-foreground": colors["foreground"],
        "block-cursor-blurred-background": variables["cursor-background"],
        "input-cursor-foreground": colors["background"],
        "input-cursor-background": colors["foreground"],
        "input-selection-background": variables["selection-background"],
        "input-selection-foreground": variables["tone-strong"],
        "screen-selection-background": variables["selection-background"],
        "screen-selection-foreground": variables["tone-strong"],
        "footer-key-foreground": colors["primary"],
        **{f"markdown-h{level}-color": variables["tone-strong"] for level in range(1, 4)},
        **{f"markdown-h{level}-color": colors["foreground"] for level in range(4, 7)},
        **{f"markdown-h{level}-background": "transparent" for level in range(1, 7)},
        **{f"markdown-h{level}-text-style": "bold" for level in range(1, 7)},
    }
    return {**derived, **variables}


def fallbacks(theme: Theme) -> dict[str, str]:
    """Values for the stylesheet's variables under a theme that does not define them.

    For ``App.get_theme_variable_defaults``: with them, every theme of Textual's own works too.
    """
    color = theme.to_color_system().generate()
    good, bad, warn = color["text-success"], color["text-error"], color["text-warning"]
    dim = "auto 75%"
    return {
        "rule": color["primary-muted"],
        "tone-strong": color["foreground"],
        "tone-dim": dim,
        "tone-accent": color["text-accent"],
        "tone-good": good,
        "tone-bad": bad,
        "tone-warn": warn,
        "cursor-background": color["panel"],
        "selection-background": color["primary-muted"],
        "code-background": color["surface"],
        "band-identity": color["text-accent"],
        "band-objectives": color["text-primary"],
        "band-capabilities": good,
        "band-situational": warn,
        "band-exploration": bad,
        "band-reserve": dim,
        "risk-low": good,
        "risk-medium": warn,
        "risk-high": bad,
        "diff-added-background": color["success-muted"],
        "diff-removed-background": color["error-muted"],
    }


def __getattr__(name: str) -> object:
    if name == "THEMES":
        themes = tuple(load(_HERE / f"{stem}.toml") for stem in _ORDER)
        globals()["THEMES"] = themes
        return themes
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
