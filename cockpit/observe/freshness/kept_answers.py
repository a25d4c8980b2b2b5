"""Answers that this process has read: their facts by scope item, with the mark of their content.

What a packet dropped is served from the store while the mark is the same. Nothing here is needed: another
process reads again. See ``docs/reference/guards.md``, served again.
"""

from __future__ import annotations

from collections import OrderedDict

MOST_ANSWERS = 10_000
"""Answers that are kept; the one that was used longest ago is forgotten first."""


class KeptAnswers:
    """Fact ids by session and scope item."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], tuple[str, tuple[str, ...]]] = OrderedDict()

    def keep(self, session_id: str, item: str, mark: str, fact_ids: tuple[str, ...]) -> None:
        """Keep the answer to ``item``, whose content had ``mark`` before it was read."""
        self._answers.pop((session_id, item), None)
        if not mark or not fact_ids:
            return
        self._answers[(session_id, item)] = (mark, fact_ids)
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)

    def has(self, session_id: str, item: str) -> bool:
        """Return whether there is an answer, of whatever content."""
        return (session_id, item) in self._answers

    def find(self, session_id: str, item: str, mark: str) -> tuple[str, ...]:
        """Return the fact ids of the answer whose content has ``mark``; empty without one."""
        kept = self._answers.get((session_id, item))
        if kept is None or not mark or kept[0] != mark:
            return ()
        self._answers.move_to_end((session_id, item))
        return kept[1]
