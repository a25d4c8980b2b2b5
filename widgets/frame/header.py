"""The header: one line with project, task, wave and phase or agent and turn, model and spend."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.numerals import money, tokens
from widgets.text.style_names import ACCENT, BAD, DIM, GOOD, STRONG, WARN, Part, line, spread, tone
from widgets.views import HeaderView

STAGES = ("observe", "orient", "decide", "act", "learn")

_GAP = "   "
_TASK_CELLS = 48


class HeaderBar(Widget):
    """Draw a :class:`HeaderView` on one line, giving up the least important parts first.

    Posts nothing. From wide to narrow it loses the loop strip, the spend, the model, the task type,
    the branch and the state. The number of waiting proposals goes last, and a warning never.
    """

    DEFAULT_CSS = """
    HeaderBar { height: 1; width: 1fr; padding: 0 1; text-wrap: nowrap; }
    """

    view: reactive[HeaderView] = reactive(HeaderView(project=""))

    def show(self, view: HeaderView) -> None:
        """Draw ``view``."""
        self.view = view

    def render(self) -> Content:
        width = self.content_size.width
        for left, right in self._choices():
            if left.cell_length + right.cell_length + 2 <= width:
                return spread(left, right, width)
        return spread(left, right, width)

    def _choices(self) -> list[tuple[Content, Content]]:
        """Return (left, right) sides of the line, the most detailed first."""
        return [
            (self._left(details), self._right(details))
            for details in (
                {"strip", "estimate", "spend", "model", "kind", "branch", "state"},
                {"estimate", "spend", "model", "kind", "branch", "state"},
                {"spend", "model", "kind", "branch", "state"},
                {"model", "kind", "branch", "state"},
                {"kind", "branch", "state"},
                {"branch", "state"},
                {"state"},
                set[str](),
            )
        ]

    def _left(self, details: set[str]) -> Content:
        view = self.view
        parts: list[Part] = [(f"⚠ {view.warning}", f"{BAD} reverse"), "  "] if view.warning else []
        parts += [("cockpit", STRONG), "  "]
        if view.project:
            parts.append(view.project)
        if "branch" in details and view.branch:
            parts += [(" ▸ ", DIM), view.branch]
        task = _shorten(view.task, _TASK_CELLS if "kind" in details else _TASK_CELLS // 2)
        if task:
            parts += [_GAP, (task, STRONG)]
        if "kind" in details and (view.agent or view.task_type):
            parts += [" " if task else _GAP, view.agent or view.task_type]
        if view.agent and view.turn:
            parts += [_GAP, f"turn {view.turn}"]
        elif view.wave:
            parts += [_GAP, f"wave {view.wave}"]
            if "estimate" in details and view.of_waves >= view.wave:
                parts.append((f" of ~{view.of_waves}", DIM))
            parts.append("  ")
            parts += [self._phase()]
        if "strip" in details and not view.agent:
            parts.append(_GAP)
            for place, stage in enumerate(STAGES):
                if place:
                    parts.append((" › ", DIM))
                parts.append((stage, WARN if stage == view.phase else DIM))
        return line(*parts)

    def _phase(self) -> Part:
        """Return the phase of the wave; once the session has ended, how it ended."""
        if self.view.end_sign:
            return (f"{self.view.end_sign} {self.view.state.upper()}", tone(self.view.end_tone))
        phase = self.view.phase
        style = GOOD if phase == "done" else BAD if phase == "failed" else WARN
        sign = {"done": "✔ ", "failed": "✗ "}.get(phase, "")
        return (sign + phase.upper(), style)

    def _right(self, details: set[str]) -> Content:
        view = self.view
        parts: list[Part] = []
        if "state" in details and view.state and not (view.wave and view.end_sign):
            parts += [(view.state, DIM), _GAP]
        if "model" in details and view.model:
            parts += [(view.model, DIM), " "]
        if "model" in details and view.mode:
            parts += [("· ", DIM), (view.mode, DIM), " "]
        if "branch" in details and view.plan:
            parts += [(f"☰ {view.plan}", DIM), " "]
        if "spend" in details and view.tokens:
            parts += [f"{tokens(view.tokens)} tok", "  "]
        if "spend" in details and view.cost_usd is not None:
            parts += [money(view.cost_usd), _GAP]
        if "spend" in details and view.context:
            parts += [(f"context {view.context}", DIM), _GAP]
        if view.pending:
            parts.append((f"● {view.pending}", ACCENT))
        return line(*parts).rstrip()


def _shorten(text: str, cells: int) -> str:
    return text if len(text) <= cells else text[: cells - 1] + "…"
