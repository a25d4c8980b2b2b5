"""The estimate in a request is what a packet spends on the facts: text, paths and fences."""

from __future__ import annotations

import pytest

from cockpit.core.fenced_text import SEPARATOR, fenced
from cockpit.observe.context_request import parse_request
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.fan_out import ObserveLimits
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.preview_cost import SAMPLE, estimate_sum
from cockpit.store.context.facts import Fact


def rendered(facts: list[Fact]) -> int:
    """Count the facts as a prompt has them."""
    return count_tokens(SEPARATOR.join(fenced(f.source_ref, "full", f.full.text) for f in facts))


@pytest.mark.parametrize("rev", [None, "HEAD"])
async def test_the_estimate_of_each_item_is_what_it_takes(project, rev):
    project.write(
        "src/large.py", "".join(f"def f{n}(a):\n    return a + {n}\n\n\n" for n in range(600))
    )
    project.commit("a large file")
    scope = [
        "file:src/app.py",
        "file:src/app.py @outline",
        "file:src/app.py @reference",
        "file:src/app.py:3-9",
        "file:src/*.py:1-4",
        "file:src/large.py",
        "file:src/large.py @outline",
        "file:src/large.py:5-80",
        "file:src/large.py:1800-2200",
        "search:load in *.py",
        "symbol:Config.load",
        "tree:.",
        "diff:HEAD~2..HEAD",
        "log:HEAD",
        "docs:words about load",
    ]
    gateway = ContextGateway.of(root=project.root, rev=rev and project.head)
    asked = parse_request({"purpose": "p", "question": "q", "scope": scope})
    for preview in await gateway.preview(asked):
        assert not preview.refused and preview.tokens
        fetched = await gateway.fetch(asked, [preview.item])
        facts = list(fetched.facts)
        assert fetched.outcomes[0].tokens == sum(fact.cost.full for fact in facts)
        assert preview.tokens == pytest.approx(rendered(facts), rel=0.1, abs=3), preview.item


async def test_many_small_files_are_estimated_with_all_that_is_around_them(project):
    texts = {
        f"data/p{n % 37}/module_{n}.py": f"value = {n}\n" + "".join(
            f"print({line})\n" for line in range(n % 7 if n % 400 else 100)
        )
        for n in range(1_200)
    }  # fmt: skip
    for path, text in texts.items():
        project.write(path, text)
    gateway = ContextGateway.of(root=project.root, limits=ObserveLimits(max_jobs=2_000))
    asked = parse_request({"purpose": "p", "question": "q", "scope": ["file:data/**"]})
    (preview,) = await gateway.preview(asked)
    truth = count_tokens(SEPARATOR.join(fenced(f"file:{p}", "full", t) for p, t in texts.items()))
    assert preview.tokens == pytest.approx(truth, rel=0.1)
    assert preview.note.startswith("1,200 files")


def test_of_many_a_sample_is_measured_and_what_is_large_for_itself() -> None:
    measured: list[int] = []

    def cost_at(place: int) -> int:
        measured.append(place)
        return 10 + sizes[place]

    sizes = [1_000_000, *(n % 90 for n in range(50_000))]
    total = sum(10 + size for size in sizes)
    assert estimate_sum(sizes, cost_at) == pytest.approx(total, rel=0.03)
    assert len(measured) <= 2 * SAMPLE and 0 in measured
