"""A screen of all widgets at once, each with everything that it can show."""

from collections.abc import Callable
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from widget_cases import WIDGETS

import themes
from widgets import views
from widgets.conversation.conversation import Conversation
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel

NAMES = ("identity", "objectives", "capabilities", "situational", "exploration", "reserve")
TONES: tuple[Any, ...] = ("dim", "good", "bad", "warn", "accent")
MARKDOWN = """# Head

Words with **strong**, *em*, ~~gone~~ and `code`, a [link](https://x.example).

## Second

- item
  1. inner

> quoted

| a | b |
|---|---|
| 1 | 2 |

```python
@decorator
def f(x: int = 1) -> str:  # comment
    '''doc'''
    return f"{x!r}" if not None else 'y' + 0.5
class C(Base): ...
```

```diff
--- a/x
+++ b/x
@@ -1 +1 @@
- gone
+ come
```
"""
CODE = "import os\n\n\ndef f(x):\n    # comment\n    return 'text', 1, None\n"
HINTS = (views.KeyHintView("⏎", "approve", strong=True), views.KeyHintView("n", "narrow"))


def turns(start: str) -> list[views.TurnView]:
    lines = tuple(views.LineView("↳", f"{tone} line", tone, tone) for tone in TONES)
    return [
        views.TurnView(f"{start}w", "wave", "wave 7 · decide"),
        views.TurnView(f"{start}p", "person", "words"),
        views.TurnView(f"{start}n", "note", lines=lines),
        views.TurnView(f"{start}i", "agent", "cut", interrupted=True),
        views.TurnView(f"{start}e", "error", "what happened"),
        views.TurnView(f"{start}a", "agent", MARKDOWN, lines),
    ]


ITEMS = (
    *(views.ItemView(f"file:{name}", 10, name, "outline") for name in NAMES),
    views.ItemView("file:x", 1, "reserve", refused="outside", note="noted"),
)
CONTEXT = views.ProposalView(
    "p", "context", "title", "low", "d", purpose="why", question="what", escalation="else", items=ITEMS,
    left_s=9, revises="p0", changes=("now",),
)  # fmt: skip
ACTION = views.ProposalView(
    "q", "action", "title", "high", "d", session="s", age_s=3, fields=(("argv", "gh"),), notes=("noted",),
    body="a\u200b", diffs=(views.FileDiffView("a.py", CODE, CODE.replace("text", "words") + "new = 1\n"),),
)  # fmt: skip


class Gallery(App[None]):
    """The first turns are drawn as lines where as many as there are kinds stay live."""

    CSS_PATH = themes.STYLESHEET
    CSS = """
    #left { width: 2fr; } #right { width: 3fr; } #far { width: 2fr; }
    #context { height: 30; } #action { height: 1fr; }
    WorkPane { height: 28; } Kanban { height: 30; } TwoLineList { height: 1fr; }
    """

    def __init__(self, theme: str) -> None:
        super().__init__()
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = theme
        self._fills: list[Callable[[], None]] = []

    def get_theme(self, theme_name: str) -> Any:
        return themes.find(theme_name) or super().get_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def _make(self, *names: str) -> ComposeResult:
        """Make widgets that are filled with words."""
        for name in names:
            made, fill = WIDGETS[name]("words")
            self._fills.append(fill)
            yield made

    def compose(self) -> ComposeResult:
        yield from self._make("header", "headline")
        with Horizontal():
            with Vertical(id="left"):
                yield Conversation(turns("a"))
                yield Prompt(placeholder="say what to change", id="empty")
                yield Prompt(complete=lambda kind, prefix: [views.CompletionView("/a", "hint")] * 3)
            with Vertical(id="right"):
                yield ProposalPanel(id="context")
                yield ProposalPanel(id="action")
            with Vertical(id="far"):
                yield from self._make("meter", "board", "pick")
            with Vertical():
                yield from self._make("kanban", "queue")
            with Vertical():
                yield from self._make("task")
            with Vertical():
                yield from self._make("form")
        yield from self._make("scrubber", "key bar")

    def on_mount(self) -> None:
        for fill in self._fills:
            fill()
        panel = self.query_one("#context", ProposalPanel)
        panel.show(views.QueueView(CONTEXT, 0, 2), HINTS)
        panel.narrowing = True
        self.query_one("#action", ProposalPanel).show(views.QueueView(ACTION, 1, 2), HINTS)
