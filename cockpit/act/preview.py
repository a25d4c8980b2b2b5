"""Previews: what an action will do, before anything happens.

:func:`shown` turns a call into what the user decides over: title, risk, fields, body, diffs and notes,
and the payload that runs, byte for byte. It changes nothing. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

from cockpit.act.preview_command import shown_github, shown_run
from cockpit.act.preview_commit import shown_commit
from cockpit.act.preview_files import shown_edit, shown_write
from cockpit.act.proposed_action import FileDiff, Shown
from cockpit.act.text_edits import WITHHELD, ActionRefused
from cockpit.act.tool_payloads import EditFile, GitCommit, GitHub, Run, WriteFile
from cockpit.act.tools import Call
from cockpit.act.workspace import ActGround
from cockpit.core.secrets import mask_value

__all__ = ["ActionRefused", "FileDiff", "Shown", "shown"]


async def shown(call: Call, ground: ActGround) -> Shown:
    """Return the preview of ``call`` in the project as it is now.

    Raises :class:`ActionRefused`, ``PathRefused`` and ``GhRefused``, each with a message for the model.
    """
    match call.payload:
        case WriteFile():
            preview = shown_write(call.payload, ground)
        case EditFile():
            preview = shown_edit(call.payload, ground)
        case Run():
            preview = shown_run(call.payload, ground)
        case GitHub():
            preview = shown_github(call.payload, ground)
        case GitCommit():
            preview = await shown_commit(call.payload, ground)
        case _:
            raise ActionRefused(f"{call.name} is not an action; nothing would be done.")
    if mask_value(dict(preview.payload)) != dict(preview.payload):
        raise ActionRefused(
            f"{call.name}: what it would write or run holds something that looks like a key, a token "
            f"or a password. {WITHHELD}"
        )
    return preview
