"""Previews: what an action will do, before anything happens.

:func:`preview_action` turns a call into what the user decides over: title, risk, fields, body, diffs, notes,
and the payload that runs, byte for byte. It changes nothing. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import asyncio

from cockpit.act.model_tools import Call
from cockpit.act.preview_command import preview_github, preview_run
from cockpit.act.preview_commit import preview_commit
from cockpit.act.preview_files import preview_edit, preview_write
from cockpit.act.proposed_action import ActionPreview, FileDiff
from cockpit.act.sandbox.reading_sandbox import why_no_reading
from cockpit.act.skills.preview_skill import preview_skill
from cockpit.act.text_edits import WITHHELD, ActionRefused
from cockpit.act.tool_payloads import CreateSkill, EditFile, GitCommit, GitHub, Run, WriteFile
from cockpit.act.workspace import Workspace
from cockpit.core.secrets import mask_value

__all__ = ["ActionPreview", "ActionRefused", "FileDiff", "preview_action"]


async def preview_action(call: Call, ground: Workspace) -> ActionPreview:
    """Return the preview of ``call`` in the project as it is now.

    Raises :class:`ActionRefused`, ``PathRefused`` and ``GhRefused``, each with a message for the model.
    """
    match call.payload:
        case WriteFile():
            preview = preview_write(call.payload, ground)
        case EditFile():
            preview = preview_edit(call.payload, ground)
        case Run():
            refusal = "it changes"
            if not call.payload.changes:
                refusal = await why_no_reading(ground.sandbox, ground.root)
            # Scripts and what they load are read: that may take a while.
            preview = await asyncio.to_thread(preview_run, call.payload, ground, reads=not refusal)
        case GitHub():
            preview = await preview_github(call.payload, ground)
        case GitCommit():
            preview = await preview_commit(call.payload, ground)
        case CreateSkill():
            preview = preview_skill(call.payload, ground)
        case _:
            raise ActionRefused(f"{call.name} is not an action; nothing would be done.")
    if mask_value(dict(preview.payload)) != dict(preview.payload):
        raise ActionRefused(
            f"{call.name}: what it would write or run contains text that looks like a key, a token "
            f"or a password. {WITHHELD}"
        )
    return preview
