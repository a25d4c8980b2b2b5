"""What the tests' shortcuts come to is what Textual comes to: rules of nodes, reactives, handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import textual_shortcuts
from textual import events
from textual.css import stylesheet
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode, NoScreen
from textual.message_pump import MessagePump
from textual.widgets import Input, Static
from widget_cases import WIDGETS

SHOWN = ("conversation", "proposals", "prompt", "board", "meter", "form", "pick", "markdown")
MESSAGES: dict[str, Callable[[], Any]] = {
    "mount": events.Mount,
    "key": lambda: events.Key("a", "a"),
    "focus": events.Focus,
    "changed": lambda: Input.Changed(Input(), "a"),
}
Check = Callable[[list[DOMNode]], None]


@pytest.fixture(scope="module")
def run(stage: Any) -> Iterator[Callable[[Check], None]]:
    """Run a check with every node of an app whose rules an app before it has found."""

    async def run_check(check: Check) -> None:
        check(nodes)

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        for _ in range(2):
            runner.run(stack.aclose())
            nodes = runner.run(_open(stage, stack))
        yield lambda check: runner.run(run_check(check))
        runner.run(stack.aclose())


async def _open(stage: Any, stack: AsyncExitStack) -> list[DOMNode]:
    filled = [WIDGETS[name]("some *words*") for name in SHOWN]
    shown = stage(*(widget for widget, _ in filled), size=(100, 90))
    pilot = await stack.enter_async_context(shown)
    for _, fill in filled:
        fill()
    await pilot.press("tab")
    nodes = list(pilot.app.walk_children(with_self=True))
    assert len(nodes) > 50
    return nodes


def test_rules_are_those_of_textual(
    run: Callable[[Check], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(nodes: list[DOMNode]) -> None:
        by_shortcut = [_describe_rules(node) for node in nodes]
        monkeypatch.setattr(stylesheet, "_check_selectors", textual_shortcuts._check_before)
        monkeypatch.setattr(Stylesheet, "apply", textual_shortcuts._apply_before)
        for node, rules in zip(nodes, by_shortcut, strict=True):
            node.styles.base._rules.clear()
            node.app.stylesheet.apply(node)
            assert _describe_rules(node) == rules, node

    run(check)


def _describe_rules(node: DOMNode) -> tuple[Any, ...]:
    rules = dict(node.styles.base._rules)
    layout = rules.pop("layout", None)
    components = {name: styles.base._rules for name, styles in node._component_styles.items()}
    marks = (node._has_hover_style, node._has_focus_within, node._has_order_style)
    return rules, type(layout), components, marks, node._has_odd_or_even


def test_each_node_has_a_layout_of_its_own(run: Callable[[Check], None]) -> None:
    def check(nodes: list[DOMNode]) -> None:
        layouts = [layout for node in nodes if (layout := node.styles.layout)]
        assert len({id(layout) for layout in layouts}) == len(layouts) > 10

    run(check)


def test_reactives_are_those_of_textual(run: Callable[[Check], None]) -> None:
    def check(nodes: list[DOMNode]) -> None:
        for node in nodes:
            for name, reactive in node._reactives.items():
                own = textual_shortcuts._get_before(reactive, node, type(node))
                assert getattr(node, name) == own, (node, name)

    run(check)


@pytest.mark.parametrize("kind", MESSAGES)
def test_handlers_are_those_of_textual(run: Callable[[Check], None], kind: str) -> None:
    def check(nodes: list[DOMNode]) -> None:
        message = MESSAGES[kind]()
        name = message.handler_name
        listed = 0
        for node in nodes:
            own = list(textual_shortcuts._dispatch_before(node, name, message))
            assert list(MessagePump._get_dispatch_methods(node, name, message)) == own, node
            listed += len(own)
        assert listed

    run(check)


def test_screens_are_those_of_textual(run: Callable[[Check], None]) -> None:
    def check(nodes: list[DOMNode]) -> None:
        app, screen, *others = nodes
        assert {id(node.screen) for node in (screen, *others)} == {id(screen)}
        assert app.screen is screen
        with pytest.raises(NoScreen):
            _ = Static().screen

    run(check)
