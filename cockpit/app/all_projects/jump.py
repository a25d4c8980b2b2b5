"""Where the user goes from the screen over all projects."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Jump(msgspec.Struct, frozen=True):
    """A project that the user goes to, and the session that is followed there."""

    home: Path
    key: str
    """The name of its state folder."""
    session_id: str = ""
    resumes: bool = False
    """Whether the next screen drives the session, because no process does."""
    drove: bool = False
    """Whether the process that the user comes from drove the session that it followed there."""
