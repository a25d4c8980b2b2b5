"""Themes of others, mapped: their colours, moved as far as it takes for every text to stand out.

A theme of Textual's own knows nothing of bands, risks and diffs, and its accents may be pale on its panels. A
mapped theme has every variable of ours, each text at 4.5:1 on every ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.color import Color
    from textual.theme import Theme

LEAST = 4.6
"""The contrast of mapped texts: 4.5 as of WCAG AA, and a little for rounding."""
_GROUNDS = {"surface": 0.03, "panel": 0.06, "cursor-background": 0.12, "code-background": 0.04}
"""How far grounds are from the background, towards the foreground."""
_STEPS = 50


def adapt(
    theme: Theme, complete_variables: Callable[[dict[str, str], dict[str, str]], dict[str, str]]
) -> Theme:
    """Return ``theme`` mapped; ``complete_variables`` adds what follows from colours and variables."""
    from textual.color import Color
    from textual.theme import Theme

    generated = theme.to_color_system().generate()
    back = Color.parse(generated["background"]).rgb
    base = Color(*back)
    pole = Color.parse("#ffffff" if _luminance(base) < 0.18 else "#000000")
    grounds = {name: base.blend(pole, part) for name, part in _GROUNDS.items()}
    grounds["diff-added-background"] = base.blend(_opaque(generated["success"], base), 0.1)
    grounds["diff-removed-background"] = base.blend(_opaque(generated["error"], base), 0.1)
    grounds["selection-background"] = base.blend(_opaque(generated["primary"], base), 0.2)
    backs = [base, *grounds.values()]

    def stand_out(name: str) -> str:
        color = _opaque(generated[name], base)
        for step in range(_STEPS + 1):
            moved = color.blend(pole, step / _STEPS)
            if min(contrast(moved, each) for each in backs) >= LEAST:
                return moved.hex
        return pole.hex

    names = ("foreground", "primary", "secondary", "accent", "success", "warning", "error")
    colors: dict[str, Any] = {name: stand_out(name) for name in names}
    dim = Color.parse(colors["foreground"])
    for step in range(_STEPS):  # as dim as can be read
        paler = Color.parse(colors["foreground"]).blend(base, step / _STEPS)
        if min(contrast(paler, each) for each in backs) < LEAST:
            break
        dim = paler
    good, bad, warn = colors["success"], colors["error"], colors["warning"]
    variables = {
        "rule": _opaque(generated["primary"], base).blend(base, 0.4).hex,
        "tone-strong": stand_out("foreground"),
        "tone-dim": dim.hex,
        "tone-accent": colors["accent"],
        "tone-good": good,
        "tone-bad": bad,
        "tone-warn": warn,
        **{
            name: ground.hex for name, ground in grounds.items() if name not in ("surface", "panel")
        },
        "band-identity": colors["accent"],
        "band-objectives": colors["primary"],
        "band-capabilities": good,
        "band-situational": warn,
        "band-exploration": bad,
        "band-reserve": dim.hex,
        "risk-low": good,
        "risk-medium": warn,
        "risk-high": bad,
    }
    colors |= {
        "background": base.hex,
        "surface": grounds["surface"].hex,
        "panel": grounds["panel"].hex,
    }
    return Theme(
        name=theme.name,
        dark=theme.dark,
        variables=complete_variables(colors, variables),
        **colors,
    )


def contrast(front: Color, back: Color) -> float:
    """Return the contrast of two colours by WCAG, 1 to 21."""
    light, dark = sorted((_luminance(front), _luminance(back)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: Color) -> float:
    def linear(value: int) -> float:
        part = value / 255
        return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)

    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)


def _opaque(value: str, base: Color) -> Color:
    from textual.color import Color

    color = Color.parse(value)
    return base.blend(Color(color.r, color.g, color.b), color.a, 1.0)
