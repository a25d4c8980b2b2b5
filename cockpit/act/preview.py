"""Previews: what an action will do, before anything happens.

:func:`preview_action` turns a call into what the user decides over: title, risk, fields, body, diffs, notes,
and the payload that runs, byte for byte. It changes nothing. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from msgspec.structs import replace

from cockpit.act.model_tools import Call
from cockpit.act.preview_command import preview_github, preview_run
from cockpit.act.preview_commit import preview_commit
from cockpit.act.preview_files import preview_edit, preview_write
from cockpit.act.proposed_action import ActionPreview, FileDiff
from cockpit.act.sandbox.reading_sandbox import why_no_reading
from cockpit.act.text_edits import WITHHELD, ActionRefused
from cockpit.act.tool_payloads import CreateSkill, EditFile, GitCommit, GitHub, Run, WriteFile
from cockpit.act.workspace import Workspace
from cockpit.core.secrets import mask_value
from cockpit.core.skills.read_skill import read_skill
from cockpit.core.skills.skill import (
    CORE_CHARACTERS,
    CORE_LINES,
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    NAME,
    SKILL_FILE,
    SkillInvalid,
)

FOLDER = ".cockpit/skills"


def preview_skill(payload: CreateSkill, ground: Workspace) -> ActionPreview:
    """Preview the skill's file. Raises :class:`ActionRefused` for one that breaks the layout."""
    name = payload.name.strip()
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise ActionRefused(
            f"create_skill: {name!r} is not a name. Write lower-case letters, digits and single hyphens, at"
            f" most {LONGEST_NAME} characters, like release-notes."
        )
    description = " ".join(payload.description.split())
    if not 1 <= len(description) <= LONGEST_DESCRIPTION:
        raise ActionRefused(
            f"create_skill: the description needs 1 to {LONGEST_DESCRIPTION} characters that say what the"
            " skill does and when to use it."
        )
    body = payload.body.strip("\n")
    if len(body.splitlines()) > CORE_LINES or len(body) > CORE_CHARACTERS:
        raise ActionRefused(
            f"create_skill: the body has {len(body.splitlines())} lines and {len(body):,} characters; at most"
            f" {CORE_LINES} lines and {CORE_CHARACTERS:,} characters enter a packet. Shorten it, and write"
            f" the rest to {FOLDER}/{name}/references/ with write_file."
        )
    text = make_skill_file(name, description, payload.keywords, body)
    try:
        skill = read_skill(text.encode(), Path(name), "project")
    except (SkillInvalid, UnicodeEncodeError) as error:
        raise ActionRefused(f"create_skill: {error}") from error
    if skill.remarks:
        raise ActionRefused(f"create_skill: {skill.remarks[0]}")
    preview = preview_write(WriteFile(f"{FOLDER}/{name}/{SKILL_FILE}", text), ground)
    verb = "Replace" if preview.payload["before_sha256"] else "Create"
    return replace(
        preview,
        type="create_skill",
        title=f"{verb.lower()} skill {name}",
        risk="medium",
        summary=f"{verb} the project's skill {name}: {description}",
        fields=(("skill", name), *preview.fields),
        notes=(
            *preview.notes,
            "Later sessions in this project load it when their task matches. It grants no permission.",
        ),
    )


def make_skill_file(name: str, description: str, keywords: tuple[str, ...], body: str) -> str:
    """Return the text of a ``SKILL.md`` in the public layout."""
    front = [f"name: {name}", f"description: {json.dumps(description, ensure_ascii=False)}"]
    words = ", ".join(" ".join(word.split()) for word in keywords if word.strip())
    if words:
        front += ["metadata:", f"  keywords: {json.dumps(words, ensure_ascii=False)}"]
    return "\n".join(["---", *front, "---", body, ""])


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
