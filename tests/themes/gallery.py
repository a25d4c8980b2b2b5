"""A screen of all widgets at once, each with everything that it can show."""

from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical

import themes
from widgets import views
from widgets.bands.band_meter import BandMeter
from widgets.conversation.conversation import Conversation
from widgets.forms.form import FieldView, Form, FormView
from widgets.forms.key_values import Sheet
from widgets.forms.pick_list import PickList
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.frame.headline import Headline
from widgets.frame.timeline import Timeline
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.work import task_views
from widgets.work.chain_tree_views import ChainSessionView, ChainView, MarkView
from widgets.work.kanban import Kanban
from widgets.work.task_card_views import CardView, ColumnView, KanbanView, ResultsView, TaskLineView
from widgets.work.task_memory_rows import handoff_rows, wip_rows
from widgets.work.task_panel import TaskPanel
from widgets.work.two_line_list import TwoLineList
from widgets.work.work_pane import WorkPane

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


TESTS = ResultsView(12, 1, "first")
WIP = task_views.WipView(
    "T-1", "title", "now", "testing", "next", "context", TESTS, "a1b2", True, ("file",),
    (("what", "why"),), (task_views.ErrorView("kind", "place", "message"),),
)  # fmt: skip
HANDOFF = task_views.HandoffView(
    "T-1", "title", "FAIL", "bad", "summary", ("file",), "now", True, "details"
)
HAPPENING = task_views.ActivityView("now", "✗", "bad", "quality", "words", "agent")


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


TASK = task_views.TaskView(
    "T-1", "title", "▶", "warn", "in progress", (("story", "S-1"),), "words", "words", "blocked",
    (task_views.LinkView("T-2", "waits for", "○", "good", "title"),), WIP, HANDOFF,
    (HAPPENING,), (HAPPENING,),
)  # fmt: skip
FORM = FormView("form", (
    FieldView("a", "Title", "value"), FieldView("b", "Empty", hint="a hint"),
    FieldView("c", "Type", "x", "choice", choices=("x", "y")), FieldView("d", "Words", "w\nw", "text"),
))  # fmt: skip
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
    #context { height: 30; } #action { height: 1fr; } #far WorkPane { height: 12; }
    Kanban { height: 30; } #work { height: 28; } TwoLineList { height: 1fr; }
    """

    def __init__(self, theme: str) -> None:
        super().__init__()
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = theme

    def get_theme(self, theme_name: str) -> Any:
        return themes.find(theme_name) or super().get_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def compose(self) -> ComposeResult:
        yield HeaderBar()
        yield Headline()
        with Horizontal():
            with Vertical(id="left"):
                yield Conversation([*turns("frozen"), *turns("live")])
                yield Prompt(placeholder="say what to change", id="empty")
                yield Prompt(complete=lambda kind, prefix: [views.CompletionView("/a", "hint")] * 3)
            with Vertical(id="right"):
                yield ProposalPanel(id="context")
                yield ProposalPanel(id="action")
            with Vertical(id="far"):
                yield BandMeter()
                yield WorkPane()
                yield PickList("pick", [("k", "row", "hint"), ("l", "other", "hint")])
            with Vertical():
                yield Kanban()
                yield WorkPane(id="work")
                yield TwoLineList()
            with Vertical():
                yield TaskPanel(TASK)
            with Vertical():
                yield Sheet([*wip_rows(WIP), *handoff_rows(HANDOFF)])
                yield Form(FORM)
        yield Timeline()
        yield KeyBar()

    def on_mount(self) -> None:
        view = views.HeaderView("p", "b", "T-1", "review", 7, "decide", "m", 9, 1.0, 2, "waits")
        self.query_one(HeaderBar).show(view)
        self.query_one(KeyBar).show(HINTS)
        self.query_one(Timeline).show(3, 9, "wave 3")
        self.query_one(Headline).show("Board", [("words", "$tone-dim")], 2)
        bands = tuple(views.BandView(name, 9_000, 1_000, 2_000, 9_000, 3, 2) for name in NAMES)
        cache = views.CacheView(7, 2, "$1.00")
        meter = views.MeterView(bands, 9, 10, "abcdef12", 3, 2, "profile", 3, cache)
        self.query_one(BandMeter).show(meter)
        rows = tuple(
            views.WorkRowView(tone, "▶", tone, "title", "state", "detail") for tone in TONES
        )
        self.query("#far WorkPane").first(WorkPane).show(views.WorkPaneView("summary", rows))
        panel = self.query_one("#context", ProposalPanel)
        panel.show(views.QueueView(CONTEXT, 0, 2), HINTS)
        panel.narrowing = True
        self.query_one("#action", ProposalPanel).show(views.QueueView(ACTION, 1, 2), HINTS)
        self._show_backlog()

    def _show_backlog(self) -> None:
        cards = tuple(
            CardView(f"T-{tone}", "title", "▶", tone, "P1", "note", tone, TESTS) for tone in TONES
        )
        heading = CardView("#", "epic", heading="story")
        columns = tuple(ColumnView(str(n), "To do", (heading, *cards), 5) for n in range(3))
        self.query_one(Kanban).show(KanbanView(columns))
        lines = tuple(
            TaskLineView(f"T-{t}", "▶", t, "testing", "title", TESTS, "next") for t in TONES
        )
        chains: list[Any] = []
        for tone in TONES:
            marks = (MarkView("✔", tone, "s1"), MarkView("▶", tone, "s2"))
            chains += [
                ChainView(
                    "ch-1", "▶", tone, "ch-1", "epic E-1", "about", 3, marks, 7, 12, "2 ready",
                    "draining", tone, "41k", "$0.12", folded=True,
                ),
                ChainSessionView("s", "✔", tone, "s1", "batch 1", "41k of 120k tok", full=tone == "bad"),
            ]  # fmt: skip
        work = views.WorkPaneView("sessions", (), "tasks", lines, tuple(chains))
        self.query_one("#work", WorkPane).show(work)
        queued = [
            task_views.QueuedView(f"{t}{n}", "title", "○", t, "can start", "why")
            for t in TONES
            for n in range(6)
        ]
        self.query_one(TwoLineList).show(queued)
