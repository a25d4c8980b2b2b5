"""Shorter ways to what Textual works out, for the apps of tests: the same results for a third less work.

What a node's rules are depends on the path to it alone: types, ids, classes and pseudo-classes. Apps of one
process whose stylesheets have the same rules share what was found for a path. ``test_textual_shortcuts.py``
holds each shortcut against Textual's own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from textual.app import App
from textual.cache import LRUCache
from textual.css import match, stylesheet
from textual.css.model import CombinatorType, RuleSet, Selector
from textual.css.styles import RenderStyles, RulesMap, Styles
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode, NoScreen
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget


def install() -> None:
    """Make Textual take the shortcuts in this process."""
    Stylesheet.rules_map = property(_rules_map)
    Stylesheet.apply = _apply
    Stylesheet._EXCLUDE_PSEUDO_CLASSES_FROM_CACHE = set(_OF_SIBLINGS)
    stylesheet._check_selectors = match._check_selectors = _check_selectors
    RenderStyles.get_rule = _get_rule
    Reactive.__get__ = _get_reactive
    MessagePump._get_dispatch_methods = _get_dispatch_methods
    DOMNode.screen = property(_screen)
    # Two clicks of a test are one double click, however late a loaded machine lets the second one come.
    App.CLICK_CHAIN_TIME_THRESHOLD = 600.0


class Candidates:
    """Rules that may be for a node by its own type, id and classes, with what they came to for each path."""

    def __init__(self, rules: tuple[RuleSet, ...]) -> None:
        names = {name for rule in rules for name in rule.pseudo_classes}
        self.is_for_path = names.isdisjoint(_OF_SIBLINGS)
        self.names = tuple(sorted(names))
        self.results: dict[Any, Result] = {}


class Result:
    """The rules of a node."""

    def __init__(self, rules: RulesMap) -> None:
        self.rules = rules
        self.kept: RulesMap | None = None
        """The same as a node's styles keep them, once one had nothing else: a percentage says of what.

        But the layout, of which each node has an object of its own.
        """


class Rules(dict[str, list[RuleSet]]):
    """A stylesheet's rules by selector."""

    def __init__(self, rules: list[RuleSet]) -> None:
        super().__init__()
        self._places: dict[RuleSet, int] = {}
        for place, rule in enumerate(rules):
            self._places[rule] = place
            for name in rule.selector_names:
                self.setdefault(name, []).append(rule)
        self._candidates: dict[Any, Candidates] = {}

    def find(self, node: DOMNode, key: Any) -> Candidates:
        """Return the candidates for a node whose own type, id and classes are ``key``."""
        candidates = self._candidates.get(key)
        if candidates is None:
            listed = {rule for name in self.keys() & node._selector_names for rule in self[name]}
            rules = tuple(sorted(listed, key=self._places.__getitem__))
            # Other stylesheets have them too: each widget of a new class adds rules of its own to one.
            candidates = _candidates.get(rules)
            if candidates is None:
                candidates = _candidates[rules] = Candidates(rules)
            self._candidates[key] = candidates
        return candidates


_shared: LRUCache[tuple[RuleSet, ...], Rules] = LRUCache(256)
_candidates: dict[tuple[RuleSet, ...], Candidates] = {}
_apply_before = Stylesheet.apply
_OF_SIBLINGS = Stylesheet._EXCLUDE_PSEUDO_CLASSES_FROM_CACHE - {"focus-within"}
"""Pseudo-classes for which it takes more than the path."""
_OF_THE_APP = frozenset({"dark", "light", "inline", "ansi", "nocolor"})
"""Pseudo-classes that each node has of its app."""


def _rules_map(sheet: Stylesheet) -> Rules:
    if sheet._rules_map is None:
        key = tuple(sheet.rules)
        shared = _shared.get(key)
        if shared is None:
            shared = _shared[key] = Rules(sheet.rules)
        sheet._rules_map = shared
    return sheet._rules_map  # type: ignore[return-value]


class _Taken(dict[Any, RulesMap]):
    """A cache without anything in it, which takes what Textual would keep."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: RulesMap = {}

    def __setitem__(self, _: Any, rules: RulesMap) -> None:
        self.rules = rules


def _apply(
    sheet: Stylesheet,
    node: DOMNode,
    *,
    animate: bool = False,
    cache: dict[tuple[Any, ...], RulesMap] | None = None,
) -> None:
    assert sheet.rules is not None  # parsed
    path = node.css_path_nodes
    key: Any = tuple([(type(each), each._id, frozenset(each._classes)) for each in path])
    candidates = _rules_map(sheet).find(node, key[-1])
    if not candidates.is_for_path or not isinstance(path[0], App):
        _apply_before(sheet, node, animate=animate, cache=cache)
        return
    if candidates.names:
        key = (key, *_list_states(candidates.names, path))
    result = candidates.results.get(key)
    if result is None:
        taken = _Taken()
        _apply_before(sheet, node, animate=animate, cache=taken)
        candidates.results[key] = Result(taken.rules)
        return
    node._has_hover_style = "hover" in candidates.names
    node._has_focus_within = "focus-within" in candidates.names
    node._has_order_style = node._has_odd_or_even = False
    if result.rules:
        _set_result(sheet, node, result, animate)
    sheet._process_component_classes(node)


def _set_result(sheet: Stylesheet, node: DOMNode, result: Result, animate: bool) -> None:
    styles = node.styles.base
    is_new = not styles._rules and not node._is_mounted and not _shows_scrollbar(node)
    if result.kept is None:
        sheet.replace_rules(node, result.rules, animate=animate)
        if is_new:
            result.kept = styles._rules.copy()
            result.kept.pop("layout", None)
    elif is_new:
        # Nobody is there to refresh.
        styles._rules.update(result.kept)
        styles.layout = result.rules.get("layout")
        styles._updates += 1
        node.notify_style_update()
    elif not _has(styles, result):
        sheet.replace_rules(node, result.rules, animate=animate)
    elif not animate:
        node.notify_style_update()


def _has(styles: Styles, result: Result) -> bool:
    rules, layout = styles._rules, result.rules.get("layout")
    own = rules.get("layout")
    if own is None or layout is None:
        return own is layout and rules == result.kept
    return own.name == layout.name and rules == {**(result.kept or {}), "layout": own}


def _shows_scrollbar(node: DOMNode) -> bool:
    return isinstance(node, Widget) and (
        node.show_horizontal_scrollbar or node.show_vertical_scrollbar
    )


def _list_states(names: Iterable[str], path: list[DOMNode]) -> Iterable[bool]:
    for name in names:
        for node in path[:1] if name in _OF_THE_APP else path:
            check = node._PSEUDO_CLASSES.get(name)
            yield check is not None and bool(check(node))  # type: ignore[arg-type]


_check_before = match._check_selectors


def _check_selectors(selectors: list[Selector], path: list[DOMNode]) -> bool:
    """Look at the last selector first, which is for the node itself: mostly it decides."""
    last = selectors[-1]
    if not last.check(path[-1]):
        return False
    if len(selectors) == 1 and last.combinator == CombinatorType.DESCENDENT:
        return True
    return _check_before(selectors, path)


def replace_rules(
    before: Callable[..., None],
    sheets: type[Stylesheet],
    node: DOMNode,
    rules: RulesMap,
    animate: bool,
) -> None:
    """Set the rules of a node that are other than they were; without transitions nothing is animated."""
    if not animate or rules.get("transitions"):
        before(sheets, node, rules, animate)
        return
    if node.styles.base._rules == rules:
        return
    before(sheets, node, rules, False)


def _get_rule(styles: RenderStyles, rule_name: str, default: object = None) -> object:
    rules = styles._inline_styles._rules
    if rule_name in rules:
        return rules[rule_name]  # type: ignore[literal-required]
    return styles._base_styles._rules.get(rule_name, default)


_get_before = Reactive.__get__
_plain: dict[tuple[Reactive[Any], type], bool] = {}
"""Whether a reactive of a class is only read, not computed."""


def _get_reactive(reactive: Reactive[Any], node: Any, kind: type) -> Any:
    if node is None:
        return reactive
    try:
        value = node.__dict__[reactive.internal_name]
    except KeyError:
        return _get_before(reactive, node, kind)
    key = (reactive, kind)
    try:
        plain = _plain[key]
    except KeyError:
        plain = _plain[key] = not hasattr(kind, reactive.compute_name)
    return value if plain else _get_before(reactive, node, kind)


def _screen(node: DOMNode) -> Screen[Any]:
    """The screen of a node, without importing the class each time."""
    above: MessagePump | None = node
    while above is not None:
        if isinstance(above, Screen):
            return above
        above = above._parent
    raise NoScreen("node has no screen")


_dispatch_before = MessagePump._get_dispatch_methods
_handlers: dict[tuple[type, type, str], list[tuple[type, Any]] | None] = {}
"""The methods of a class for a message by their names; None if some are decorated.

A test that gives a class another handler does so in a class of its own: those of a class are listed once.
"""


def _get_dispatch_methods(
    pump: MessagePump, method_name: str, message: Message
) -> Iterable[tuple[type, Any]]:
    key = (type(pump), type(message), method_name)
    try:
        handlers = _handlers[key]
    except KeyError:
        handlers = _handlers[key] = _list_handlers(*key)
    if handlers is None:
        yield from _dispatch_before(pump, method_name, message)
        return
    for kind, method in handlers:
        if message._no_default_action:
            return
        yield kind, method.__get__(pump, kind)


def _list_handlers(pump: type, message: type, name: str) -> list[tuple[type, Any]] | None:
    listed = []
    for kind in pump.__mro__:
        decorated = kind.__dict__.get("_decorated_handlers") or {}
        if any(issubclass(message, each) for each in decorated):
            return None
        method = kind.__dict__.get(f"_{name}") or kind.__dict__.get(name)
        if method is not None and not getattr(method, "_textual_on", None):
            listed.append((kind, method))
    return listed
