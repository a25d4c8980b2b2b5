"""Two processes on one project at once: the knowledge index, notes and trust rules stay whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from loop_calc import git

from cockpit.core.project_paths import locate_project
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.journal.verify_tables import verify_tables
from cockpit.store.notes import notes
from cockpit.store.trust import trust_rules

pytestmark = pytest.mark.slow

ROUNDS = 12
WORK = """
import asyncio, sys
from pathlib import Path
from cockpit.core.project_paths import locate_project
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.refresh_index import refresh_files
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.store.db.database import Store
from cockpit.store.notes import notes
from cockpit.store.trust import trust_rules
from cockpit.store.trust.shape import Shape

root, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
place = locate_project(root)
shape = Shape("", "investigate", "context", ("file", "*.py"))

async def main():
    index = KnowledgeIndex.open(place.state / "knowledge.db")
    ground = ProjectSnapshot.at(root)
    with Store.open(place.database) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(rounds):
            word = f"{name}zzword{number}"
            (root / f"{name}-{number}.md").write_text(f"# Page\\n\\nAll about {word}.\\n")
            await refresh_files(index, ground, rest_s=0)
            found = {passage.ref for passage in search_passages(index, word, limit=3)}
            assert f"{name}-{number}.md" in found, (word, found)
            try:
                store.write_now(lambda tx: notes.write(tx, "pitfall", f"Lesson {number}"))
            except notes.NoteInvalid as error:
                assert "says the same already" in str(error)
            store.write_now(
                lambda tx: trust_rules.accept(tx, shape, risk="low", expires_at=None, evidence=())
            )
            store.write_now(
                lambda tx: trust_rules.count_use(
                    tx, shape.rule_id, shape, proposal_id=f"p-{number}", what="file:a.py",
                    session_id="", wave_id="",
                )
            )
            store.write_now(lambda tx: trust_rules.end(tx, shape, "suspended", why=name))

asyncio.run(main())
"""


def test_two_processes_index_teach_and_decide_at_once(project: Path) -> None:
    place = locate_project(project)
    place.prepare()
    git(project, "checkout", "-q", "-b", "both")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, str(project), name, str(ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout is not None
        line = writer.stdout.readline()
        assert line == "ready\n", writer.communicate()[1]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=240)
        assert writer.returncode == 0, errors

    pages = {f"{name}-{number}.md" for name in ("left", "right") for number in range(ROUNDS)}
    index = KnowledgeIndex.open(place.state / "knowledge.db")
    assert {ref for _, ref in index.list_stamps(["docs"])} >= pages
    with Store.open(place.database) as store:
        lessons = store.read_now(notes.select)
        # Both wrote each lesson: it is one note.
        assert sorted(note.text for note in lessons) == sorted(f"Lesson {n}" for n in range(ROUNDS))
        (rule,) = store.read_now(trust_rules.select_all)
        assert (rule.status, rule.uses) == ("suspended", 2 * ROUNDS)
        assert store.read_now(verify_chain.verify).broken is None
        assert store.read_now(verify_tables).ok
