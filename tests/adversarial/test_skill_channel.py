"""A skill's files: nothing outside of its folder, and no link, is read as a part of it.

That a skill's words change nothing is shown by ``test_text_channels.py``.
"""

from __future__ import annotations

from pathlib import Path

from cockpit.observe.context_request import ContextRequest
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.scope_items import parse_item


async def test_a_skill_s_files_stay_within_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / ".cockpit" / "skills" / "deploy"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploy.\n---\n")
    (folder / "scripts" / "deploy.sh").write_text("#!/bin/sh\ntouch ran\n")
    (folder / "out.md").symlink_to("/etc/passwd")
    (folder / "blob.bin").write_bytes(b"\0\1\2")
    gateway = ContextGateway.of(root=tmp_path, skills={"deploy": folder})
    items = ("deploy/out.md", "deploy/blob.bin", "deploy/none.md", "other", "deploy/*.md")
    request = ContextRequest("p", "q", tuple(parse_item(f"skill:{item}") for item in items))
    previews = await gateway.preview(request)
    assert [bool(preview.refused) for preview in previews] == [True] * 5
    fetched = await gateway.fetch(request)
    assert fetched.facts == () and all(outcome.error for outcome in fetched.outcomes)
    good = ContextRequest("p", "q", (parse_item("skill:deploy/scripts/deploy.sh:1-1"),))
    (fact,) = (await gateway.fetch(good)).facts
    assert (fact.band, fact.full.text) == ("capabilities", "#!/bin/sh\n")
    assert fact.source_ref == "skill:deploy/scripts/deploy.sh:1-1"
