"""Let the apps of tests share what Textual works out for each of them anew.

A stylesheet is parsed once for all apps that have the same theme.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


def install() -> None:
    """Make Textual's stylesheets and pictures of this process share their work."""
    if Stylesheet._parse_rules is _parse_rules:
        return
    Stylesheet._parse_rules = _parse_rules
    Console.export_svg = _export_svg


_rules: LRUCache[tuple[Any, ...], list[RuleSet]] = LRUCache(4_096)
_themes: dict[frozenset[tuple[str, str]], int] = {}
_parse_rules_before = Stylesheet._parse_rules


def _parse_rules(
    stylesheet: Stylesheet,
    css: str,
    read_from: tuple[str, str],
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> list[RuleSet]:
    variables = stylesheet._variables
    theme = _themes.setdefault(frozenset(variables.items()), len(_themes))
    key = (css, read_from, is_default_rules, tie_breaker, scope, theme)
    rules = _rules.get(key)
    if rules is None:
        rules = _parse_rules_before(
            stylesheet, css, read_from, is_default_rules, tie_breaker, scope
        )
        _rules[key] = rules
    return rules


_export_svg_before = Console.export_svg


def _export_svg(console: Console, **options: Any) -> str:
    """Name the classes of styles alike in all pictures; their usual name is a checksum of the picture."""
    return _export_svg_before(console, **{"unique_id": "terminal-0", **options})
