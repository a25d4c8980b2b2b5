"""Retrieval by keywords: does ``docs:QUERY`` find a document that answers, and how long does it take?

The labelled set is sierra-research/tau2-bench's knowledge base of a bank (MIT, © 2025 Sierra Research): the
folder that ``COCKPIT_BENCH_DATA`` names holds its documents and queries in ``retrieval``. The documents are
files of a project, and each query is asked as an agent asks it. Retrieval by vectors does not exist yet, so
nothing is printed for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import Row, at, row

from cockpit.observe.project_snapshot import ProjectSnapshot, SourceFailed
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.docs import DocsSource

NEAR = 3


def rows() -> Iterator[Row]:
    """Yield the share of queries with a hit among the first three documents, and the time of a query."""
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data, "retrieval")
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with retrieval")
        return
    documents, queries = _read(folder / "docs.jsonl"), _read(folder / "queries.jsonl")
    with tempfile.TemporaryDirectory() as made:
        root = Path(os.path.realpath(made), "project")
        paths = _write_documents(root, documents)
        ground = ProjectSnapshot.at(root)
        asyncio.run(_search(queries[0]["query"], ground))
        hits, waits, spent = 0, list[float](), list[float]()
        for query in queries:
            started, cpu = time.perf_counter(), time.process_time()
            documents_shown = asyncio.run(_search(query["query"], ground))
            waits.append(1000 * (time.perf_counter() - started))
            spent.append(1000 * (time.process_time() - cpu))
            hits += bool({paths[path] for path in documents_shown[:NEAR]} & set(query["relevant"]))
    count = len(queries)
    print(f"  {len(documents)} documents, {count} queries; hybrid retrieval does not exist yet")
    yield row(f"keyword: a relevant document in the first {NEAR}", hits / count, "of 1")
    yield row("keyword: a query, p50", at(0.5, spent), "ms CPU", most=50)
    yield row("keyword: a query, p99", at(0.99, spent), "ms CPU", most=100)
    yield row("keyword: a query, p50, waiting", at(0.5, waits), "ms")
    yield row("keyword: a query, p99, waiting", at(0.99, waits), "ms")


async def _search(query: str, ground: ProjectSnapshot) -> list[str]:
    """Return the documents of the sections that match best, each once, the best first."""
    try:
        facts = await DocsSource().fetch(ScopeItem("docs", query), ground)
    except SourceFailed:
        return []
    return list(dict.fromkeys(str(fact.provenance["path"]) for fact in facts))


def _write_documents(root: Path, documents: list[dict[str, Any]]) -> dict[str, str]:
    """Write the documents as files of a repository; returns the id of each by its path."""
    root.mkdir()
    paths = {}
    for number, document in enumerate(documents):
        name = f"doc-{number:04}.md"
        (root / name).write_text(f"# {document['title']}\n\n{document['content']}\n", "utf-8")
        paths[name] = document["id"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "add", "-A"], check=True)
    return paths


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]
