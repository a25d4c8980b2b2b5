"""Trust rules over the whole screen: offers, rules and their evidence, and how far the inner loops are.

Enter alone accepts nothing: it asks for a second key. Specified in ``docs/reference/trust.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.core.errors import CockpitError
from cockpit.core.text import pluralize
from cockpit.loop.trust.list_rules import EvidenceRow, ListedRule, TrustOverview
from widgets.text.tone import ACCENT, DIM, STRONG, WARN, Part, line
from widgets.views import KeyHintView
from widgets.work.queue_list import QueueList
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView

_SIGNS: dict[str, tuple[str, Tone]] = {
    "offered": ("◇", "accent"),
    "active": ("◆", "good"),
    "suspended": ("◇", "warn"),
    "expired": ("·", "dim"),
    "revoked": ("·", "dim"),
}
_BACK = KeyHintView("esc", "back")
_QUESTIONS = {
    "accept": "y accepts exactly this, any other key does not",
    "revoke": "y revokes it, any other key does not",
}
_ACCEPTABLE = ("offered", "suspended", "expired", "revoked")


class TrustScreen(BacklogScreen):
    """Rules and offers, one under the cursor with its evidence below; live."""

    NAME = "Trust rules"
    DEFAULT_CSS = """
    TrustScreen #trust-evidence { height: 40%; padding: 0 1; border-top: solid $rule; }
    TrustScreen #trust-detail { height: auto; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("s", "suspend", "suspend", show=False),
        Binding("x", "ask('revoke')", "revoke", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = QueueList(
            empty="No rules and no offers yet. They appear after you approve the same shape of request"
            " several times."
        )
        self._detail = Static(id="trust-detail")
        self._overview = TrustOverview((), (), ())
        self._evidence: dict[str, Sequence[EvidenceRow]] = {}
        self._question = ("", "")
        """Verb and rule that wait for the second key."""
        self._requested = self._drawn = -1
        self._reading = False

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self._list
        with VerticalScroll(id="trust-evidence", can_focus=False):
            yield self._detail
        yield self.bar

    @property
    def body(self) -> QueueList:
        return self._list

    @property
    def task_id(self) -> str:
        return ""

    @property
    def rule(self) -> ListedRule | None:
        """The rule under the cursor."""
        row = self._list.at_cursor
        rules = self._overview.rules
        return next((rule for rule in rules if row is not None and rule.rule_id == row.key), None)

    def head(self) -> tuple[str, Sequence[Part]]:
        parts: list[Part] = []
        for each in self._overview.states:
            parts += [
                (f"{each.task_type} ", STRONG),
                (f"orient {each.orient.state}, decide {each.decide.state}   ", DIM),
            ]
        return self.NAME, parts or [("what passes without asking, and why", DIM)]

    def update_hints(self) -> None:
        verb, _ = self._question
        if verb:
            self.bar.show([KeyHintView("y", _QUESTIONS[verb].partition(",")[0][2:]), _BACK])
            return
        rule = self.rule
        hints = []
        if rule is not None and rule.status in _ACCEPTABLE:
            hints.append(KeyHintView("⏎", "accept"))
        if rule is not None and rule.status == "active" and "/" not in rule.rule_id:
            hints.append(KeyHintView("s", "suspend"))
        if rule is not None and rule.status != "revoked" and "/" not in rule.rule_id:
            hints.append(KeyHintView("x", "decline" if rule.status == "offered" else "revoke"))
        self.bar.show([*hints, _BACK])

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for actions on tasks: a key that withdraws a question must not begin one."""
        if action in ("do", "pane_do") and parameters[0] not in ("palette", "help"):
            return False
        return super().check_action(action, parameters)

    def on_key(self, event: events.Key) -> None:
        """Take the second key, whatever it is; those that ask for it only ask again."""
        verb, rule_id = self._question
        if not verb or event.key in ("enter", "x"):
            return
        self._question = ("", "")
        if event.key == "y":
            event.stop()
            self._decide(verb, rule_id)
        self._draw_detail()
        self.update_hints()

    def on_queue_list_opened(self, event: QueueList.Opened) -> None:
        """Ask for the second key of an acceptance."""
        event.stop()
        if (rule := self.rule) is not None and rule.status in _ACCEPTABLE:
            self.action_ask("accept")

    def action_ask(self, verb: str) -> None:
        """Ask for the second key."""
        rule = self.rule
        if rule is None or "/" in rule.rule_id:
            return  # an attention rule ends with its profile
        self._question = (verb, rule.rule_id)
        self._draw_detail()
        self.update_hints()

    def action_suspend(self) -> None:
        """Suspend the rule under the cursor."""
        rule = self.rule
        if rule is not None and rule.status == "active" and "/" not in rule.rule_id:
            self._decide("suspend", rule.rule_id)

    def _decide(self, verb: str, rule_id: str) -> None:
        async def decide() -> None:
            await (await self.host.engine.trust()).decide(verb, rule_id)

        self.host.request(decide)

    def on_queue_list_moved(self) -> None:
        """Show the evidence of another rule."""
        self._question = ("", "")
        self._draw_detail()
        self.update_hints()
        rule = self.rule
        if rule is not None and rule.rule_id not in self._evidence:
            self.host.run_in_background(self._read_evidence(rule.rule_id))

    # Drawing

    def paint(self) -> None:
        super().paint()
        self._requested = self.host.state.seq
        if self._requested != self._drawn and not self._reading and self._list.is_attached:
            self._reading = True
            self.host.run_in_background(self._read_and_draw())

    def redraw(self) -> None:
        """Do nothing: rules do not depend on the backlog; :meth:`paint` reads them."""

    async def _read_and_draw(self) -> None:
        """Read until the newest state is drawn."""
        try:
            while self.is_attached and self._requested != self._drawn:
                requested = self._requested
                desk = await self.host.engine.trust()
                self._overview = await desk.read_overview()
                self._evidence.clear()
                self._list.show([_row(rule) for rule in self._overview.rules])
                if (rule := self.rule) is not None:
                    self._evidence[rule.rule_id] = await desk.read_evidence(rule.rule_id)
                self._drawn = requested
        except CockpitError as error:
            self._drawn = self._requested
            self.host.show_error(str(error))
        finally:
            self._reading = False
        if self.is_attached:
            self._draw_detail()
            self.paint()

    async def _read_evidence(self, rule_id: str) -> None:
        try:
            desk = await self.host.engine.trust()
            self._evidence[rule_id] = await desk.read_evidence(rule_id)
        except CockpitError as error:
            self.host.show_error(str(error))
        if self.is_attached:
            self._draw_detail()

    def _draw_detail(self) -> None:
        rule = self.rule
        lines = [line((problem, WARN)) for problem in self._overview.problems]
        if rule is not None:
            lines += _detail_lines(rule, self._evidence.get(rule.rule_id, ()))
            verb, rule_id = self._question
            if rule_id == rule.rule_id:
                lines.insert(0, line((_QUESTIONS[verb], ACCENT)))
        self._detail.update(Content("\n").join(lines))


def _row(rule: ListedRule) -> QueuedView:
    sign, tone = _SIGNS[rule.status]
    what = "short card" if rule.effect == "card" else "passes"
    where = " · ".join(filter(None, (rule.task_type or "any task type", rule.agent, what)))
    uses = f" · {pluralize(rule.uses, 'use')}" if rule.uses else ""
    return QueuedView(rule.rule_id, rule.says, sign, tone, rule.status, f"{where}{uses}")


def _detail_lines(rule: ListedRule, evidence: Sequence[EvidenceRow]) -> list[Content]:
    facts = [
        ("stored in", rule.stored_in),
        ("risk", f"at most {rule.risk}" if rule.risk else ""),
        ("accepted", (rule.accepted_at or "")[:10]),
        ("expires", (rule.expires_at or "")[:10]),
        ("last used", (rule.last_used_at or "")[:16].replace("T", " ")),
        ("why", rule.why),
    ]
    lines = [line((f"{name:<10}", DIM), value) for name, value in facts if value]
    if evidence:
        lines.append(line(("evidence: what you approved", STRONG)))
    for row in evidence:
        when = row.decided_at[:16].replace("T", " ")
        lines.append(line((f"  {when}  {row.proposal_id}  ", DIM), row.title))
    return lines
