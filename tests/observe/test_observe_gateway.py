"""The gateway: propose, then fetch; the same facts anywhere; one failing item costs itself."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from observe_world import Project

from cockpit.access.confined_paths import PathRefused
from cockpit.core.canonical_json import canonical_json
from cockpit.observe.context_request import ContextRequest, parse_request
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.gateway import Caps, ContextGateway
from cockpit.store.context.facts import LEVELS, UTILITY_MAX

pytestmark = pytest.mark.slow

SCOPE = [
    "file:src/app.py",
    "file:src/app.py:3-9 @outline",
    "search:load in *.py",
    "symbol:Config.load",
    "tree:.",
    "diff:HEAD~1..HEAD",
    "log:HEAD",
]


def request(*scope: str) -> ContextRequest:
    return parse_request({"purpose": "see", "question": "what?", "scope": list(scope)})


def gateway(project: Project, rev: str | None = None, caps: Caps | None = None) -> ContextGateway:
    return ContextGateway.of(root=project.root, rev=rev, limits=caps)


async def test_previews_come_first_and_in_order(project: Project) -> None:
    asked = request(*SCOPE, "file:nowhere.py", "file:/etc/passwd", "diff:HEAD..gone")
    previews = await gateway(project).preview(asked)
    assert [preview.item for preview in previews] == list(asked.scope)
    assert all(p.tokens > 0 and not p.refused and p.note for p in previews[:7])
    assert [bool(p.refused) for p in previews[7:]] == [True, True, True]
    assert {p.band for p in previews} == {"situational", "exploration"}


async def test_fetching_gives_facts_and_an_outcome_for_each_item(project: Project) -> None:
    asked = request(*SCOPE, "file:nowhere.py")
    fetched = await gateway(project).fetch(asked)
    assert [outcome.item for outcome in fetched.outcomes] == list(asked.scope)
    assert all(outcome.facts >= 1 and not outcome.error for outcome in fetched.outcomes[:7])
    assert fetched.outcomes[7].error == "there is no file 'nowhere.py'"
    assert fetched.outcomes[7].body() == {
        "item": "file:nowhere.py",
        "facts": 0,
        "tokens": 0,
        "error": "there is no file 'nowhere.py'",
    }
    for fact in fetched.facts:
        assert 0 < fact.utility <= UTILITY_MAX and fact.dedupe_key and fact.full.tokens >= 0
        assert fact.provenance is not None and fact.provenance["level"] in LEVELS
        assert len(fact.provenance["sha256"]) == 64
        json.dumps(dict(fact.provenance), allow_nan=False)
        fact.full.text.encode()


async def test_only_the_approved_items_are_read(project: Project) -> None:
    asked = request(*SCOPE)
    fetched = await gateway(project).fetch(asked, asked.scope[:1])
    assert [fact.source_ref for fact in fetched.facts] == ["file:src/app.py"]
    assert (await gateway(project).fetch(asked, [])).facts == ()


async def test_a_fact_named_twice_comes_once(project: Project) -> None:
    asked = request(
        "file:src/use.py", 'file:"src/use.py"', "file:src/use.py:1-6", "tree:src", "tree:src/"
    )
    fetched = await gateway(project).fetch(asked)
    refs = [fact.source_ref for fact in fetched.facts]
    assert refs == ["file:src/use.py", "file:src/use.py:1-6", "tree:src"]


async def test_facts_past_the_cap_are_left_out_and_said_so(project: Project) -> None:
    asked = request("file:src/app.py", "file:src/use.py", "file:README.md")
    fetched = await gateway(project, caps=Caps(max_facts=2)).fetch(asked)
    assert len(fetched.facts) == 2
    assert fetched.outcomes[2].error == "1 facts are past the limit of 2"


async def test_time_over_is_said_so_and_costs_one_item(project: Project) -> None:
    project.write("trap.txt", "a" * 60 + "b\n")
    asked = request("search:(a+)+$", "file:src/app.py")
    count_tokens("the vocabulary is loaded before the clock runs")
    hasty = gateway(project, caps=Caps(job_timeout_s=2.0))
    fetched, (late, sound) = await asyncio.gather(hasty.fetch(asked), hasty.preview(asked))
    assert "took longer than 2 s" in fetched.outcomes[0].error
    assert fetched.outcomes[1].error == "" and len(fetched.facts) == 1
    assert "took longer" in late.refused and not sound.refused


async def test_too_many_items_at_once_are_refused(project: Project) -> None:
    caps = Caps(max_jobs=1)
    one, two = await gateway(project, caps=caps).preview(request("tree:.", "tree:src"))
    assert not one.refused and "more than 1 items" in two.refused


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.context_request import parse_request
from cockpit.core.canonical_json import digest
asked = parse_request({"purpose": "p", "question": "q", "scope": json.loads(sys.argv[2])})
got = asyncio.run(ContextGateway.of(root=Path(sys.argv[1]), rev=sys.argv[3] or None).fetch(asked))
print(digest([[f.fact_id, f.full.text, f.reference.text, f.outline and f.outline.text,
               f.full.tokens, dict(f.provenance), f.dedupe_key] for f in got.facts]))
"""


@pytest.mark.parametrize("at_revision", [False, True])
async def test_the_same_bytes_in_any_process_and_directory(
    project: Project, tmp_path: Path, at_revision: bool
) -> None:
    copy = tmp_path / "other" / "place"
    shutil.copytree(project.root, copy)
    rev = project.head if at_revision else ""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(root), json.dumps(SCOPE), rev],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        )
        for root, seed, zone in ((project.root, "0", "UTC"), (copy, "1", "Asia/Tokyo"))
    ]
    one, other = (program.communicate()[0].strip() for program in running)
    assert one == other != b""


async def test_no_secret_and_no_place_comes_through(project: Project) -> None:
    canary = "ghp_" + "a1B2" * 9
    project.write("src/app.py", f"def load():\n    return '{canary}'\n").write(
        f"{canary}.txt", "load"
    )
    project.commit(f"load {canary}")
    asked = request(
        "file:src/app.py", "search:load", "symbol:load", "tree:.", "diff:HEAD~1..HEAD", "log:HEAD",
        "search:\\b(?:" + canary, "file:" + canary, "diff:HEAD.." + canary,
    )  # fmt: skip
    previews = await gateway(project).preview(asked)
    fetched = await gateway(project).fetch(asked)
    stored = [
        [
            f.source_ref,
            f.full.text,
            f.reference.text,
            f.outline,
            dict(f.provenance or {}),
            f.dedupe_key,
        ]
        for f in fetched.facts
    ]
    for shown in (canonical_json([repr(row) for row in stored]), [p.refused for p in previews]):
        assert canary not in str(shown) and str(project.root) not in str(shown)
    assert all(canary not in outcome.error for outcome in fetched.outcomes)


def test_a_root_that_is_no_project_is_refused(project: Project) -> None:
    with pytest.raises(PathRefused):
        ContextGateway.of(root=project.root / ".git")
