"""What an agent from outside does with tools of its own, as lines of its session's conversation."""

from __future__ import annotations

from cockpit.app.projection import row_detail as read
from cockpit.store.journal.journal import Row
from widgets.views import LineView

_SUMMARY_MOST = 400


def outside_line(row: Row) -> tuple[str, LineView] | None:
    """(the slot that later rows of the same call rewrite, the line); None for what is not drawn.

    A slot names the run as well: a later one numbers its calls anew.
    """
    detail = row.raw_detail()
    title = read.text(detail, "title")
    slot = f"t:{read.text(detail, 'run')}:{read.text(detail, 'call_id')}"
    match row.action:
        case "runner.started":
            number = read.number(detail, "number")
            right = f"run {number}" if number > 1 else ""
            text = f"{read.text(detail, 'runner')} takes this session"
            return f"t:{row.seq}", LineView("↳", text, "dim", right)
        case "runner.tool_started":
            return slot, LineView("▶", title, "warn", "running")
        case "runner.tool_ended" if read.truth(detail, "failed"):
            summary = read.text(detail, "summary")[:_SUMMARY_MOST]
            return slot, LineView("✗", f"{title}: {summary}", "bad", "failed")
        case "runner.tool_ended":
            return slot, LineView("✔", title, "good")
        case "runner.noted":
            return f"t:{row.seq}", LineView("·", read.text(detail, "message"), "warn")
        case _:
            return None
