"""``file:`` and ``tree:``: from the disk and from a revision, and never from anywhere else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from observe_world import Project

from cockpit.core.errors import CockpitError
from cockpit.observe.project_files import MAX_FILE_BYTES
from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem, parse_item
from cockpit.observe.sources.file import FileSource
from cockpit.observe.sources.tree import TreeSource
from cockpit.store.context.facts import Fact

pytestmark = pytest.mark.slow


async def read(project: Project, text: str, rev: str | None = None) -> Fact:
    (fact,) = await FileSource().fetch(parse_item(text), ProjectSnapshot.at(project.root, rev=rev))
    return fact


async def tree(project: Project, text: str, rev: str | None = None) -> list[str]:
    (fact,) = await TreeSource().fetch(parse_item(text), ProjectSnapshot.at(project.root, rev=rev))
    return fact.full.text.split("\n")


async def test_a_file_is_read_with_its_provenance(project: Project) -> None:
    fact = await read(project, "file:src/use.py")
    content = (project.root / "src" / "use.py").read_bytes()
    assert fact.full.text == content.decode()
    assert fact.source_ref == "file:src/use.py" and fact.source_type == "file"
    assert fact.provenance == {
        "path": "src/use.py",
        "rev": None,
        "lines": [1, 6],
        "total_lines": 6,
        "sha256": hashlib.sha256(content).hexdigest(),
        "level": "full",
    }
    assert fact.outline is not None and "4: def main()" in fact.outline.text
    assert "\n" not in fact.reference.text and "src/use.py" in fact.reference.text


async def test_lines_are_cut_out_and_bounded(project: Project) -> None:
    fact = await read(project, "file:src/use.py:4-99")
    assert fact.full.text.startswith("def main():\n")
    assert fact.source_ref == "file:src/use.py:4-6"
    assert fact.provenance is not None and fact.provenance["lines"] == [4, 6]
    with pytest.raises(SourceFailed, match="has 6 lines"):
        await read(project, "file:src/use.py:7-9")


async def test_the_reviewed_revision_is_read_not_the_disk(project: Project) -> None:
    first = project.git("rev-parse", "HEAD~1").strip()
    project.write("src/app.py", "changed on disk\n").write("new.py", "new\n")
    assert "mode='r'" not in (await read(project, "file:src/app.py", first)).full.text
    assert "mode='r'" in (await read(project, "file:src/app.py", project.head)).full.text
    assert (await read(project, "file:src/app.py")).full.text == "changed on disk\n"
    with pytest.raises(SourceFailed, match=r"there is no file 'new\.py'"):
        await read(project, "file:new.py", project.head)
    assert "new.py" in await tree(project, "tree:.")
    assert "new.py" not in await tree(project, "tree:.", project.head)


async def test_levels_hold_no_more_than_was_granted(project: Project) -> None:
    outline = await read(project, "file:src/app.py @outline")
    assert "return" not in outline.full.text and "def helper(value)" in outline.full.text
    assert outline.outline is None and outline.source_ref == "file:src/app.py @outline"
    reference = await read(project, "file:src/app.py @reference")
    assert "def" not in reference.full.text
    full = await read(project, "file:src/app.py")
    assert len({fact.dedupe_key for fact in (outline, reference, full)}) == 3
    assert len({fact.fact_id for fact in (outline, reference, full)}) == 3


@pytest.mark.parametrize("rev", [False, True])
async def test_binaries_and_giants_are_refused(project: Project, rev: bool) -> None:
    project.write("logo.png", b"\x89PNG\0\0").write("big.txt", "line\n" * (MAX_FILE_BYTES // 4))
    head = project.commit("big things")
    at = head if rev else None
    ground = ProjectSnapshot.at(project.root, rev=at)
    for text, words in (("file:logo.png", "binary"), ("file:big.txt", "too many to read whole")):
        with pytest.raises(SourceFailed, match=words):
            await read(project, text, at)
        with pytest.raises(SourceFailed, match=words):
            await FileSource().preview(parse_item(text), ground)
    assert (await read(project, "file:big.txt:3-4", at)).full.text == "line\nline\n"


@pytest.mark.parametrize("rev", [False, True])
async def test_hostile_paths_reach_nothing(project: Project, tmp_path: Path, rev: bool) -> None:
    (tmp_path / "secret").write_text("canary\n")
    (project.root / "out").symlink_to("../secret")
    (project.root / "inner").symlink_to("src/app.py")
    os.mkfifo(project.root / "pipe")
    head = project.commit("links")
    ground = ProjectSnapshot.at(project.root, rev=head if rev else None)
    hostile = ("../secret", "/etc/passwd", "out", ".git/config", ".GIT/HEAD", "pipe", "src", "~/x")
    for path in hostile:
        for act in (FileSource().preview, FileSource().fetch):
            with pytest.raises(CockpitError) as refused:
                await act(ScopeItem("file", path), ground)
            assert "canary" not in str(refused.value)
            assert str(tmp_path) not in str(refused.value)


ODD = ("new\nline.py", "tab\t.py", "\U0001f600 smile.py", "quo\"te.py", "-dash.py", "a:1-2", "sp ace",
       ":(exclude)x", "*", "[x].py", "esc\x1b[31m.py", "rtl\u202e.py")  # fmt: skip


@pytest.mark.parametrize("rev", [False, True])
async def test_odd_file_names_are_read_and_listed(project: Project, rev: bool) -> None:
    for name in ODD:
        project.write(name, f"value = {name!r}\n")
    head = project.commit("odd")
    ground = ProjectSnapshot.at(project.root, rev=head if rev else None)
    for name in ODD:
        (fact,) = await FileSource().fetch(ScopeItem("file", name), ground)
        assert fact.full.text == f"value = {name!r}\n"
        assert parse_item(fact.source_ref) == ScopeItem("file", name)
        (again,) = await FileSource().fetch(parse_item(fact.source_ref), ground)
        assert again == fact
        assert fact.source_ref.isprintable() and fact.reference.text.isprintable()
    (listing,) = await TreeSource().fetch(ScopeItem("tree", "."), ground)
    lines = listing.full.text.split("\n")
    assert all(line.isprintable() for line in lines) and len(lines) == 4 + len(ODD)


async def test_a_tree_leaves_out_what_is_ignored(project: Project) -> None:
    project.write(".gitignore", "*.log\nbuild/\n").write("x.log", "x").write("build/y", "y")
    project.write("untracked.py", "z")
    lines = await tree(project, "tree:.")
    assert "untracked.py" in lines and "src/app.py" in lines
    assert not {"x.log", "build/y"} & set(lines)
    assert not any(line.startswith(".git/") for line in lines)
    assert await tree(project, "tree:src") == ["src/app.py", "src/use.py"]
    assert await tree(project, "tree:. @outline") == ["./ 3 files", "src/ 2 files", "tests/ 1 file"]
    for text, rev in (("tree:nowhere", None), ("tree:nowhere", project.head), ("tree:.git", None)):
        with pytest.raises(CockpitError):
            await tree(project, text, rev)


async def test_without_git_files_and_trees_work(tmp_path: Path) -> None:
    plain = Project(tmp_path / "plain")
    plain.write("a.py", "x = 1\n").write("node_modules/dep/i.js", "x").write("src/b.py", "y")
    assert await tree(plain, "tree:.") == ["a.py", "src/b.py"]
    assert (await read(plain, "file:a.py")).full.text == "x = 1\n"
