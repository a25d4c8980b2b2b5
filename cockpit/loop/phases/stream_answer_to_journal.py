"""The model's answer as it streams: masked, and journalled in fragments, at most ten a second.

See ``docs/reference/loop.md``, phases, and ``docs/reference/security.md``, masking.
"""

from __future__ import annotations

from cockpit.core.secrets import mask
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import messages

INTERVAL_S = 0.1
_LONGEST_LINE = 16_384


class AnswerStream:
    """One streamed message: call :meth:`feed` with each fragment.

    No text is journalled that could still become part of a secret: the last word of a line waits until
    it is complete, and a private key block until it ends.
    """

    def __init__(self, store: Store, session_id: str, wave_id: str, message_id: str) -> None:
        self.message_id = message_id
        self._store = store
        self._session_id = session_id
        self._wave_id = wave_id
        self._lines: list[str] = []
        """The whole lines that are journalled or may be, joined only when they are asked for."""
        self._rest = ""
        """What follows them."""
        self._journalled_of_line = ""
        """The masked text of the first line of the rest that is journalled."""
        self._fragment_count = 0
        # An answer that comes at once needs no fragments.
        self._last_journalled_at = store.clock.monotonic()

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join([*self._lines, self._rest])

    @property
    def has_fragments(self) -> bool:
        """Whether a part of it was journalled while it streamed."""
        return self._fragment_count > 0

    async def feed(self, fragment: str) -> None:
        """Add ``fragment``; journal the text that is complete once the interval has passed."""
        self._rest += fragment
        now = self._store.clock.monotonic()
        if now - self._last_journalled_at < INTERVAL_S:
            return
        ready = self._take_ready_text()
        if ready:
            self._last_journalled_at = now
            await self._journal(ready)

    async def _journal(self, text: str) -> None:
        is_first = self._fragment_count == 0
        self._fragment_count += 1
        number = self._fragment_count

        def write(tx: Tx) -> None:
            ids = {
                "session_id": self._session_id,
                "wave_id": self._wave_id,
                "message_id": self.message_id,
            }
            if is_first:
                messages.start(tx, **ids)
            messages.append_delta(tx, **ids, text=text, number=number)

        await self._store.write(write)

    def _take_ready_text(self) -> str:
        """Return the masked text that may be journalled now and was not yet."""
        ready = ""
        while not self._is_inside_key():
            line, end, after = self._rest.partition("\n")
            if not end:
                # Of a very long line nothing more is shown before it ends: each look reads all of it.
                line = "" if len(line) > _LONGEST_LINE else line[: line.rfind(" ") + 1]
            masked = mask(line + end)
            if masked.startswith(self._journalled_of_line):
                ready += masked[len(self._journalled_of_line) :]
                self._journalled_of_line = masked
            elif end:
                # The journalled text is not a prefix any more; the completed message corrects it.
                self._journalled_of_line = ""
            if not end:
                return ready
            self._lines.append(line + end)
            self._rest, self._journalled_of_line = after, ""
        return ready

    def _is_inside_key(self) -> bool:
        begin = self._rest.rfind("-----BEGIN")
        return begin >= 0 and "-----END" not in self._rest[begin:]
