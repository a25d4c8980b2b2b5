"""``diff:`` and ``log:``: the same bytes in every clone, whatever is in the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from observe_world import Project

from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import parse_item
from cockpit.observe.sources.diff import DiffSource
from cockpit.observe.sources.log import LogSource
from cockpit.store.context.facts import Fact

pytestmark = pytest.mark.slow


async def diff(project: Project, text: str, rev: str | None = None) -> list[Fact]:
    return await DiffSource().fetch(parse_item(text), ProjectSnapshot.at(project.root, rev=rev))


async def log(project: Project, text: str) -> Fact:
    (fact,) = await LogSource().fetch(parse_item(text), ProjectSnapshot.at(project.root))
    return fact


async def test_a_file_is_a_fact_with_its_hunks(project: Project) -> None:
    (fact,) = await diff(project, "diff:HEAD~1..HEAD")
    assert fact.source_type == "diff"
    assert fact.source_ref == "diff:HEAD~1..HEAD in src/app.py"
    assert fact.full.text.startswith("diff --git a/src/app.py b/src/app.py\nindex ")
    assert "+    def load(self, path, mode='r'):" in fact.full.text
    assert fact.outline is not None
    assert fact.outline.text.startswith("src/app.py modified +2 −2\n@@ -6,9 +6,9 @@")
    assert fact.provenance is not None
    assert fact.provenance["old"] == project.git("rev-parse", "HEAD~1").strip()
    assert fact.provenance["new"] == project.head
    assert (fact.provenance["added"], fact.provenance["removed"]) == (2, 2)
    (again,) = await diff(project, fact.source_ref)
    assert again == fact


async def test_branches_are_compared_where_they_part_and_commits_as_they_are(project):
    project.git("checkout", "-q", "-b", "feature", "HEAD~1")
    project.write("feature.py", "x = 1\n").commit("feature")
    for spelled in ("main..feature", "main...feature", "main.."):
        changed = await diff(project, f"diff:{spelled}")
        assert [fact.source_ref.split(" in ")[1] for fact in changed] == ["feature.py"]
    between = await diff(project, f"diff:{project.git('rev-parse', 'main').strip()}..feature")
    assert {fact.source_ref.split(" in ")[1] for fact in between} == {"feature.py", "src/app.py"}
    project.git("checkout", "-q", "--orphan", "other")
    project.commit("alone")
    with pytest.raises(SourceFailed, match="no commit in common"):
        await diff(project, "diff:main...other")


async def test_kinds_of_change(project: Project) -> None:
    project.git("mv", "src/use.py", "src/moved.py")
    project.write("bin.dat", b"\0\1\2").write("new.txt", "new\n").write("empty", "")
    (project.root / "README.md").unlink()
    (project.root / "tests" / "test_app.py").chmod(0o755)
    (project.root / "link").symlink_to("new.txt")
    project.commit("many kinds")
    facts = await diff(project, "diff:HEAD~1..HEAD")
    kinds = {f.provenance["path"]: f.provenance["status"] for f in facts if f.provenance}
    assert kinds == {
        "README.md": "deleted",
        "bin.dat": "binary, added",
        "empty": "added",
        "link": "added",
        "new.txt": "added",
        "src/moved.py": "renamed",
        "tests/test_app.py": "mode changed",
    }
    (moved,) = [f for f in facts if f.provenance and f.provenance["path"] == "src/moved.py"]
    assert moved.provenance is not None and moved.provenance["old_path"] == "src/use.py"


ODD = ("new\nline", "tab\there", "\U0001f600", 'quo"te', "sp ace", "-dash", "a b/ b/x", "back\\")


async def test_terminal_escapes_reach_no_single_line(project: Project) -> None:
    project.write("esc\x1b]52;c;x\x07.txt", "\x1b[2J\x1b]0;title\x07\u202e\n").commit("\x1b[31mred")
    (fact,) = await diff(project, "diff:HEAD~1..HEAD")
    assert fact.reference.text.isprintable() and fact.source_ref.isprintable()
    assert "\x1b[2J" in fact.full.text
    assert (await log(project, "log:HEAD")).reference.text.isprintable()


async def test_a_large_diff_is_cut_by_file(project: Project) -> None:
    project.write("big.txt", "".join(f"line number {n} of many\n" for n in range(30_000)))
    project.write("small.txt", "small\n").commit("a large file")
    big, small = await diff(project, "diff:HEAD~1..HEAD")
    assert len(big.full.text) < 210_000
    assert big.full.text.endswith("more lines of this file's diff are not shown\n")
    assert big.provenance is not None and big.provenance["added"] == 30_000
    assert "+small" in small.full.text


async def test_secrets_in_diffs_and_logs_are_masked(project: Project) -> None:
    canary = "ghp_" + "a1B2" * 9
    project.write("conf.py", f"x = '{canary}'\n").commit(f"use {canary}")
    assert canary not in repr(await diff(project, "diff:HEAD~1..HEAD"))
    assert canary not in repr(await log(project, "log:HEAD~1..HEAD"))


async def test_unknown_revisions_are_named(project: Project) -> None:
    for text in ("diff:HEAD..nowhere", "diff:nowhere", "log:nowhere"):
        item = parse_item(text)
        source = DiffSource() if item.kind == "diff" else LogSource()
        for act in (source.preview, source.fetch):
            with pytest.raises(SourceFailed, match="names no commit of this repository"):
                await act(item, ProjectSnapshot.at(project.root))


async def test_repositories_without_commits_and_none_at_all(tmp_path: Path) -> None:
    empty = Project(tmp_path / "empty").git_init().write("a.py", "x = 1\n")
    plain = Project(tmp_path / "plain").write("a.py", "x = 1\n")
    for text, source in (("diff:HEAD", DiffSource()), ("log:HEAD", LogSource())):
        with pytest.raises(SourceFailed, match="no commits yet"):
            await source.fetch(parse_item(text), ProjectSnapshot.at(empty.root))
        with pytest.raises(SourceFailed, match="not a git repository"):
            await source.preview(parse_item(text), ProjectSnapshot.at(plain.root))


async def test_commits_are_told_in_full(project: Project) -> None:
    project.write("x", "x").commit("subject\n\nbody line\n\nSigned-off-by: Ada")
    fact = await log(project, "log:HEAD~1..HEAD")
    assert fact.full.text == (
        f"commit {project.head}\nauthor Ada\ndate 2026-01-02T03:04:05+01:00\n\n    subject\n\n"
        "    body line\n\n    Signed-off-by: Ada"
    )
    whole = await log(project, "log:HEAD @outline")
    assert [line.split(" ", 2)[2] for line in whole.full.text.split("\n")] == [
        "subject",
        "load takes a mode",
        "first",
    ]


async def test_long_logs_are_bounded_and_counted(project: Project) -> None:
    for number in range(52):
        project.git("commit", "-q", "--allow-empty", "-m", f"commit {number}")
    fact = await log(project, "log:main")
    assert fact.full.text.count("\ndate ") == 50
    assert fact.full.text.endswith("… 4 older commits")
    preview = await LogSource().preview(parse_item("log:main"), ProjectSnapshot.at(project.root))
    assert preview.note == "54 commits, the newest 50 shown"
