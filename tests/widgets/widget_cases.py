"""Every widget, filled with one text wherever a view takes text."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget
from work_cases import WORK_WIDGETS, chain_rows, task_lines

from widgets import views
from widgets.bands.band_meter import BandMeter
from widgets.bands.fact_list import FactList
from widgets.conversation.conversation import Conversation
from widgets.forms.pick_list import PickList
from widgets.frame.footer import KeyBar
from widgets.frame.header import HeaderBar
from widgets.frame.timeline import Timeline
from widgets.prompt.prompt import Prompt
from widgets.proposals.proposal_panel import ProposalPanel
from widgets.text.markdown import MarkdownLines
from widgets.work.work_pane import WorkPane

Filled = Callable[[str], tuple[Widget, Callable[[], None]]]
"""Makes a widget and the call that fills it once it is on a screen."""


def header(text: str) -> tuple[Widget, Callable[[], None]]:
    bar = HeaderBar()
    view = views.HeaderView(text, text, text, text, 3, "decide", text, 1_000, 0.5, 1, text)
    return bar, lambda: bar.show(view)


def key_bar(text: str) -> tuple[Widget, Callable[[], None]]:
    bar = KeyBar()
    return bar, lambda: bar.show(
        [views.KeyHintView(text, text, True), views.KeyHintView(text, text)]
    )


def meter(text: str) -> tuple[Widget, Callable[[], None]]:
    made = BandMeter()
    bands = (views.BandView(text, 5, 1, 2, 9), views.BandView("identity", 9, 1, 2, 9, 1, 1))
    return made, lambda: made.show(
        views.MeterView(bands, 5, 10, text, 1, 1, text, 3, views.CacheView(1, 2, text))
    )


def board(text: str) -> tuple[Widget, Callable[[], None]]:
    made = WorkPane()
    rows = (views.WorkRowView("k", text[:2], "bad", text, text, text, 1, True),) * 3
    view = views.WorkPaneView(text, rows, text, task_lines(text), chain_rows(text))
    return made, lambda: made.show(view)


def scrubber(text: str) -> tuple[Widget, Callable[[], None]]:
    made = Timeline()
    return made, lambda: made.show(3, 9, text)


def pick(text: str) -> tuple[Widget, Callable[[], None]]:
    return PickList(text, [("k", text, text), ("l", text, "")], empty=text), lambda: None


def markdown(text: str) -> tuple[Widget, Callable[[], None]]:
    source = (
        f"{text}\n\n# {text}\n\n- {text}\n\n[{text}]({text})\n\n"
        f"```{text}\n{text}\n```\n\n| {text} |\n|---|\n| {text} |"
    )
    return MarkdownLines(source), lambda: None


def prompt(text: str) -> tuple[Widget, Callable[[], None]]:
    made = Prompt(
        placeholder=text,
        entries=[text],
        complete=lambda kind, prefix: [
            views.CompletionView(text, text),
            views.CompletionView(prefix, kind),
        ],
    )

    def fill() -> None:
        made.policy = text
        made.focus()
        made.put(f"{text} @")

    return made, fill


def conversation(text: str) -> tuple[Widget, Callable[[], None]]:
    made = Conversation()
    lines = (views.LineView(text[:1], text, "good", text), views.LineView("", text))

    def fill() -> None:
        roles = ("person", "agent", "wave", "note", "error")
        made.show([views.TurnView(role, role, text, lines) for role in roles])
        for end in range(1, len(text) + 1, 5):
            made.upsert(views.TurnView("stream", "agent", text[:end], streaming=True))
        made.upsert(views.TurnView("stream", "agent", text, streaming=True))

    return made, fill


def proposals(text: str) -> tuple[Widget, Callable[[], None]]:
    made = ProposalPanel()
    texts = dict.fromkeys(
        (
            *("proposal_id", "title", "digest", "session", "task", "role", "revises"),
            *("purpose", "question", "escalation", "body"),
        ),
        text,
    )
    bands = (
        views.BandChangeView(text, (1, 2, 3), (2, 3, 4)),
        views.BandChangeView("a", (1, 2, 3), (1, 2, 3)),
    )
    rules, checks = (
        (views.RuleChangeView(text, text, text),),
        (views.GuardCheckView(text, False, text),),
    )
    front = views.ProposalView(
        **texts, kind="action", risk="high", age_s=5, left_s=5, changes=(text,), notes=(text,),
        items=(views.ItemView(text, 1, text, text, text, text), views.ItemView(text, 1, "reserve")),
        fields=((text, text), ("argv", text)),
        diffs=(views.FileDiffView(text, text, text + "\nmore"), views.FileDiffView(text, None, text)),
        shift=views.ProfileChangeView(text, text, text, (1, 2), bands, rules, (text,), checks),
        second_key=True,
    )  # fmt: skip
    return made, lambda: made.show(views.QueueView(front, 0, 2), [views.KeyHintView(text, text)])


def facts(text: str) -> tuple[Widget, Callable[[], None]]:
    made = FactList(empty=text)
    rows = [
        views.FactView(text, "kept", text, 5, text, text, 900_000, text, True),
        views.FactView("b", "changed", text, 5, text, text),
    ]

    def fill() -> None:
        made.show(rows)
        made.provide({text: text})

    return made, fill


WIDGETS: dict[str, Filled] = {
    "header": header,
    "key bar": key_bar,
    "meter": meter,
    "board": board,
    "scrubber": scrubber,
    "pick": pick,
    "markdown": markdown,
    "prompt": prompt,
    "conversation": conversation,
    "proposals": proposals,
    "facts": facts,
    **WORK_WIDGETS,
}
