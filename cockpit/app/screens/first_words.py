"""The words of the screen that a newcomer does not know: each is explained once, when it is first drawn.

Which words a user has dismissed is kept in the user's state folder, for all projects. Specified in
``docs/reference/screen.md``, words.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.app.prompt_draft import replace_file

if TYPE_CHECKING:
    from cockpit.app.state.screen_state import Views

NAME = "explained-words.json"
_MOST_BYTES = 10_000

WORDS = {
    "wave": "one walk through observe, orient, decide, act and learn, with at most one call of the model",
    "packet": "all that the agent gets for a wave, compiled anew under a budget of tokens",
    "fact": "a piece of text in the packet, with its source and its size in tokens",
    "band": "one of the six parts of the packet, each with a guaranteed share of the budget",
    "context request": "what the agent wants to read next, and why: it reads nothing that you do not approve",
    "action": "what the agent wants to do: exactly what is shown is carried out, once",
    "permission": "what an external agent asks you before it does it",
    "profile": "how the budget is divided among the bands, and what weighs how much",
    "epoch": "waves whose packets only grow at the end, so that the provider's cache keeps the rest",
    "policy": "what is approved without you: ask, trusted, reads or all; ⇧⇥ changes it",
    "turn": "what an external agent does for one message of yours; it has turns in place of waves",
    "chain": "one `cockpit work`: worker processes that do the tasks of the backlog on a branch",
    "worker": "one process of a chain; at its token limit it hands over to the next",
    "handoff": "the result of a task: its status and a summary, for you and for later tasks",
    "skill": "instructions that the agent loads for a kind of work, listed by /skills",
    "trust rule": "lets requests of exactly one shape pass without you, until you object once",
}
"""Each word and what it means, in the order in which they are explained."""


def list_met(views: Views) -> frozenset[str]:
    """Return the words that stand on the screen with these views."""
    met: set[str] = set()
    header, meter, front = views.header, views.meter, views.queue.front
    if header.wave:
        met |= {"wave"}
    if header.agent and header.turn:
        met |= {"turn"}
    if meter.bands:
        met |= {"packet", "fact", "band", "policy"}
    if meter.profile or (front is not None and front.kind == "profile"):
        met |= {"profile"}
    if any(use.is_fresh for use in meter.history[1:]):
        met |= {"epoch"}
    if front is not None:
        met |= {
            "context": {"context request"},
            "action": {"action"},
            "permission": {"permission"},
            "skill": {"skill"},
        }.get(front.kind, set())
        met |= {"trust rule"} if front.card_rule else set()
    if views.board.chains:
        met |= {"chain", "worker", "handoff"}
    return frozenset(met)


class FirstWords:
    """Which words a user knows. ``folder`` is the user's state folder; empty explains none."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / NAME if folder else None
        self._dismissed = self._load()

    def find(self, views: Views) -> str:
        """Return the first word on the screen that was not dismissed; empty where there is none."""
        if self._path is None or len(self._dismissed) == len(WORDS):
            return ""
        met = list_met(views)
        return next((word for word in WORDS if word in met and word not in self._dismissed), "")

    def dismiss(self, word: str) -> None:
        """Explain the word no more, in no project and after no restart. Raises OSError."""
        # Another screen of the user's may have dismissed words since.
        self._dismissed |= {word} | self._load()
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self._path, json.dumps(sorted(self._dismissed)))

    def _load(self) -> frozenset[str]:
        if self._path is None:
            return frozenset()
        try:
            with self._path.open("rb") as file:
                words = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError):
            return frozenset()  # a word is explained once more, and nothing is lost
        listed = words if isinstance(words, list) else []
        return frozenset(word for word in listed if isinstance(word, str) and word in WORDS)
