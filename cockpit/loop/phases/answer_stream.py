"""The agent's words as they stream: coalesced, masked, journalled at most ten times a second."""

from __future__ import annotations

from cockpit.core.secrets import mask
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import messages

INTERVAL_S = 0.1


class Speech:
    """One streamed message. ``feed`` what the model says; ``text`` is all of it so far.

    Nothing is shown that could still turn out to be part of a secret: the last word of a line
    waits until it is whole, a private key block until it ends.
    """

    def __init__(self, store: Store, session_id: str, wave_id: str, message_id: str) -> None:
        self.text = ""
        self.message_id = message_id
        self._store = store
        self._session_id = session_id
        self._wave_id = wave_id
        self._shown = 0
        self._shown_of_line = ""
        self._number = 0
        self._last = store.clock.monotonic()  # an answer that comes at once needs no fragments

    async def feed(self, fragment: str) -> None:
        """Take a fragment in; journal what is ripe when the interval has passed."""
        self.text += fragment
        now = self._store.clock.monotonic()
        if now - self._last < INTERVAL_S:
            return
        ripe = self._ripe()
        if ripe:
            self._last = now
            await self._show(ripe)

    async def _show(self, text: str) -> None:
        first = self._number == 0
        self._number += 1
        number = self._number

        def step(tx: Tx) -> None:
            place = {
                "session_id": self._session_id,
                "wave_id": self._wave_id,
                "message_id": self.message_id,
            }
            if first:
                messages.start(tx, **place)
            messages.append_delta(tx, **place, text=text, number=number)

        await self._store.write(step)

    def _ripe(self) -> str:
        """The masked words that may be shown now and were not."""
        out = ""
        while True:
            end = self.text.find("\n", self._shown)
            whole = end >= 0
            if self._inside_key():
                return out
            line = self.text[self._shown : end + 1] if whole else self.text[self._shown :]
            if not whole:
                line = line[: line.rfind(" ") + 1]
            safe = mask(line)
            if safe.startswith(self._shown_of_line):
                out += safe[len(self._shown_of_line) :]
                self._shown_of_line = safe
            elif whole:
                # What was shown is no prefix any more; the completed message will set it right.
                self._shown_of_line = ""
            if not whole:
                return out
            self._shown = end + 1
            self._shown_of_line = ""

    def _inside_key(self) -> bool:
        begin = self.text.rfind("-----BEGIN", self._shown)
        return begin >= 0 and "-----END" not in self.text[begin:]
