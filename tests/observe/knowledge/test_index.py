"""The index: masked, confined, incremental, rebuilt when damaged; searches are deterministic."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cockpit.access.confined_paths import Confined
from cockpit.observe.knowledge.index_store import VERSION, KnowledgeIndex
from cockpit.observe.knowledge.passage import KINDS
from cockpit.observe.knowledge.refresh_index import (
    StoredDocument,
    refresh_files,
    refresh_paths,
    refresh_stored,
)
from cockpit.observe.knowledge.search_index import search_passages
from cockpit.observe.project_snapshot import ProjectSnapshot

PAY = "# Payments\n\nPayments are retried three times with backoff.\n\n## Refunds\n\nRefunds need a reason.\n"
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def index() -> KnowledgeIndex:
    return KnowledgeIndex.open(None)


def test_a_passage_names_file_lines_and_headings(index: KnowledgeIndex) -> None:
    index.put_document("docs", "docs/pay.md", "", PAY)
    (best, *_) = search_passages(index, "why does a refund need reasons?", limit=3)
    assert (best.ref, best.start, best.end, best.title) == (
        "docs/pay.md",
        5,
        7,
        "Payments › Refunds",
    )
    assert best.text == "## Refunds\n\nRefunds need a reason."
    assert 0.5 <= best.score <= 1


def test_kinds_limit_and_threshold(index: KnowledgeIndex) -> None:
    for number in range(4):
        index.put_document("docs", f"{number}.md", "", PAY.replace("three", str(number)))
    index.put_document("note", "note:N-1", "Retry", "Payments are retried by hand on Fridays.")
    assert [p.kind for p in search_passages(index, "payments", kinds=("note",), limit=9)] == [
        "note"
    ]
    assert len(search_passages(index, "payments retried", limit=2)) == 2
    assert search_passages(index, "payments", limit=0) == ()
    assert search_passages(index, "zebra", limit=9) == ()
    assert search_passages(index, "the of and", limit=9) == ()
    every = search_passages(index, "payments on mars orbit", limit=9)
    assert every and all(p.score < 0.5 for p in every)
    assert search_passages(index, "payments on mars orbit", limit=9, threshold=0.5) == ()


def test_what_tests_say_ranks_behind_and_scores_only_fall(index: KnowledgeIndex) -> None:
    question = "are payments retried with backoff on refunds"
    said = f'"""Check that {question}."""\n'
    index.put_document("docstring", "tests/test_pay.py", "", said)
    (alone,) = search_passages(index, question, threshold=0.5)
    assert alone.ref == "tests/test_pay.py", "where nothing else answers, it does"
    index.put_document("docstring", "pay.py", "", said.replace("Check", "Say"))
    index.put_document("docs", "docs/pay.md", "", PAY)
    passages = search_passages(index, question, limit=9, threshold=0.5)
    assert [passage.ref for passage in passages][-1] == "tests/test_pay.py"
    assert {passage.ref for passage in passages} == {"docs/pay.md", "pay.py", "tests/test_pay.py"}
    scores = [passage.score for passage in passages]
    assert scores == sorted(scores, reverse=True)


def test_secrets_are_masked_before_they_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    index = KnowledgeIndex.open(path)
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIE" * 16 + "\n-----END RSA PRIVATE KEY-----"
    index.put_document(
        "docs", "a.md", "", f"# Keys\n\n{key}\n\ntoken {TOKEN}\n\n## After\n\nLast line."
    )
    index.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert TOKEN.encode() not in stored and b"MIIEMIIE" not in stored
    again = KnowledgeIndex.open(path)
    (hit, *_) = search_passages(again, "last line", limit=1)
    assert (hit.start, hit.end) == (9, 11)  # as in the file
    assert path.stat().st_mode & 0o077 == 0
    again.close()


@pytest.mark.parametrize("damage", ["noise", "newer", "half", "empty"])
def test_a_damaged_or_newer_file_is_rebuilt_with_a_word(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "knowledge.db"
    index = KnowledgeIndex.open(path)
    index.put_document("docs", "a.md", "", PAY)
    index.close()
    if damage == "noise":
        path.write_bytes(b"not a database" * 400)
    elif damage == "half":
        path.write_bytes(path.read_bytes()[:100] + os.urandom(8000))
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version={VERSION + 1}")
    again = KnowledgeIndex.open(path)
    assert again.count().chunks == 0
    assert bool(again.notice) == (damage != "empty")
    assert again.put_document("docs", "a.md", "", PAY)
    assert search_passages(again, "refunds", limit=1)
    again.close()


def test_hostile_questions_and_names_are_data(index: KnowledgeIndex) -> None:
    index.put_document("docs", "a.md", "", PAY)
    for question in (
        '" OR 1=1 --',
        "refunds* NEAR/2 (",
        "title:x AND",
        "\x00\ud800",
        "é" * 5000,
        "a " * 9000,
    ):
        search_passages(index, question, limit=3)
    index.put_document("docs", "'; DROP TABLE chunks; --.md", "'\"", "# \x00\n\n" + "[" * 20_000)
    assert index.count().documents == {"docs": 2}
    with pytest.raises(ValueError, match="not a kind of document"):
        index.put_document("secret", "x", "", "text")


async def test_a_project_is_indexed_as_it_changes(index: KnowledgeIndex, repository: Path) -> None:
    ground = ProjectSnapshot(Confined(repository))
    first = await refresh_files(index, ground)
    assert (first.changed, first.dropped, first.is_complete) == (3, 0, True)
    refs = {ref for _, ref in index.list_stamps()}
    assert refs == {
        "README.md",
        "pay.py",
        "docs/pay.md",
    }  # neither ignored, sensitive, linked nor binary
    assert (await refresh_files(index, ground)).changed == 0
    (repository / "docs/pay.md").write_text(PAY.replace("reason", "signature"))
    assert refresh_paths(index, ground, ["docs/pay.md", "big.png"]).changed == 1
    assert search_passages(index, "signature", limit=1)[0].ref == "docs/pay.md"
    (repository / "README.md").unlink()
    done = await refresh_files(index, ground)
    assert (done.changed, done.dropped) == (0, 1)
    assert search_passages(index, "welcome", limit=1) == ()


async def test_a_file_with_unchanged_size_and_time_is_read_again_when_it_was_fresh(
    index: KnowledgeIndex, repository: Path
) -> None:
    ground = ProjectSnapshot(Confined(repository))
    await refresh_files(index, ground)
    file = repository / "README.md"
    status = file.stat()
    file.write_text(file.read_text().replace("Welcome", "Goodbye"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (await refresh_files(index, ground)).changed == 1


async def test_what_another_process_indexes_meanwhile_is_not_taken_for_gone(repository, tmp_path):
    other = KnowledgeIndex.open(tmp_path / "knowledge.db")

    class Overtaken(KnowledgeIndex):
        """Another process writes and indexes a page just before this one looks at the index."""

        def list_stamps(self, *kinds: Any) -> dict[tuple[str, str], str]:
            (repository / "late.md").write_text("# Late\n\nA page of the other process.\n")
            other.put_document("docs", "late.md", "", "# Late\n\nA page of the other process.\n")
            return super().list_stamps(*kinds)

    index = Overtaken.open(tmp_path / "knowledge.db")
    await refresh_files(index, ProjectSnapshot(Confined(repository)))
    assert search_passages(index, "other process", limit=1)[0].ref == "late.md"


def test_what_the_store_says_is_made_exactly_so(index: KnowledgeIndex) -> None:
    index.put_document("docs", "a.md", "", PAY)
    notes = [StoredDocument("note", f"note:N-{n}", "", f"Tea number {n}.") for n in range(3)]
    kinds = tuple(kind for kind in KINDS if kind not in ("docs", "docstring"))
    assert refresh_stored(index, kinds, notes).changed == 3
    done = refresh_stored(index, kinds, notes[1:])
    assert (done.changed, done.dropped) == (0, 1)
    assert index.count().documents == {"docs": 1, "note": 2}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "docs").mkdir(parents=True)
    (root / "ignored").mkdir()
    outside = tmp_path / "outside.md"
    outside.write_text("# Elsewhere\n\nWelcome to nowhere.\n")
    (root / "README.md").write_text("# Shop\n\nWelcome to the shop.\n")
    (root / "docs/pay.md").write_text(PAY)
    (root / "pay.py").write_text('def pay():\n    """Pay with tea."""\n')
    (root / "broken.py").write_bytes(b"\xff\x00def")
    (root / "ignored/a.md").write_text("# Ignored\n\nWelcome.\n")
    (root / "secrets.txt").write_text("Welcome, password.\n")
    (root / "link.md").symlink_to(outside)
    (root / ".gitignore").write_text("ignored/\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root
