"""Which skills a task gets, with 60 installed: hits on labelled prompts, and tokens against loading all.

The 53 skills of ``data/skills/skills.tsv`` are realistic descriptions beside cockpit's own seven; their
bodies are generated, of one typical length. A packet holds the best skill in full where it is sure, and names
others in one line; both are at most three. So there are two hit rates: of what is *loaded*, and of what is
*loaded or named*, which an agent gets at without a search.

``data/skills/examples.tsv`` has four example requests a skill, as an author may write them. They were written
from names and descriptions, after all prompts, by somebody who had read none of them; nothing was changed
after they were measured. Skills without them, as most public ones are, are measured too.

Five sets of prompts were written by hand, some of each need no skill (``-``):

- ``prompts.tsv`` by who wrote the first ranking, before it. Weights and thresholds are tuned with it.
- ``unseen_prompts.tsv`` by somebody else, from names and descriptions. No weight and no word was chosen by
  its single prompts; the place of two thresholds was, by how much of it they leave quiet.
- ``later_prompts.tsv`` by who had tuned vectors, mostly without a word of the descriptions: the hard end.
- ``realistic_prompts.tsv`` after the bars were set: 25 ordinary requests and 16 that need no skill.
- ``fresh_prompts.tsv`` before the ranking that is measured here: ordinary requests.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Row, row
from msgspec.structs import replace

from cockpit.core.skills.skill import Skill
from cockpit.core.skills.skill_layers import SkillPlace, load_skills
from cockpit.loop.knowledge.skill_routes import compare_routes, describe_routes
from cockpit.loop.skills.project_skills import make_skill_fact
from cockpit.observe.knowledge import embed_text
from cockpit.observe.knowledge.index_store import KnowledgeIndex
from cockpit.observe.knowledge.nearest_chunks import NearestChunks
from cockpit.orient.skills.choose_skills import choose_skills
from cockpit.orient.skills.rank_skills import SkillIndex, build_index

DATA = Path(__file__).resolve().parent / "data" / "skills"
BUILT_IN = Path(__file__).resolve().parent.parent / "cockpit" / "data" / "skills"
_BODY_LINES = 40
_MOST = 3
Prompt = tuple[frozenset[str], str]


def rows() -> Iterator[Row]:
    """Yield hits, quiet negatives and tokens by set, by words alone and with vectors, and the cost."""
    skills = install_skills()
    yield row("skills installed", len(skills), "", least=60)
    with_examples = install_skills(examples=True)
    full = {name: make_skill_fact(skill).cost.full for name, skill in skills.items()}
    yield row("tokens of loading all", sum(full.values()), "tokens")
    index = build_index(skills.values())
    for name, group in list_groups().items():
        yield from _measure(Library(skills, index, full), name, group, {})
    yield from _measure_cost(skills)
    libraries = {"with vectors": Library(skills, index, full)}
    index = build_index(with_examples.values())
    libraries["with vectors and examples"] = Library(with_examples, index, full)
    for name, group in list_groups().items():
        library = libraries["with vectors and examples"]
        yield from _measure(library, f"{name}, with examples", group, {})
    for label, library in libraries.items():
        if (nearness := _compare(library.skills)) is None:
            print(f"  {label}: skipped, the extra 'vector' is not installed")
            continue
        for name, group in list_groups().items():
            yield from _measure(library, f"{name}, {label}", group, nearness)


@dataclass(frozen=True, slots=True)
class Library:
    """The skills, and their tokens in full."""

    skills: Mapping[str, Skill]
    index: SkillIndex
    full: Mapping[str, int]


def _measure(
    library: Library,
    label: str,
    group: Sequence[Prompt],
    nearness: Mapping[str, Mapping[str, float]],
) -> Iterator[Row]:
    in_full, reached, first, spent, quiet, silent, idle = [], [], [], [], [], [], []
    wrong = 0
    for want, text in group:
        vectors = nearness.get(text)
        chosen = choose_skills(library.skills, library.index, text, most=_MOST, vectors=vectors)
        loaded = {choice.name for choice in chosen if not choice.is_named}
        named = {choice.name for choice in chosen if choice.is_named}
        tokens = sum(library.full[name] for name in loaded)
        if want:
            in_full.append(bool(want & loaded))
            reached.append(bool(want & (loaded | named)))
            first.append(bool(chosen) and chosen[0].name in want)
            wrong += len(loaded - want)
            spent.append(tokens)
        else:
            quiet.append(not loaded)
            silent.append(not chosen)
            idle.append(tokens)
    count = f"{len(reached)} prompts"
    yield row(f"{label}: hit@3, loaded or named, {count}", _share(reached), "", least=0.9)
    is_realistic = label.startswith("realistic")
    least = 0.8 if is_realistic else None
    yield row(f"{label}: hit@3, loaded in full", _share(in_full), "", least=least)
    yield row(f"{label}: hit@1, loaded or named", _share(first), "")
    yield row(f"{label}: wrong skills in full for each prompt", wrong / len(reached), "")
    yield row(
        f"{label}: nothing in full, of {len(quiet)} that need none",
        _share(quiet),
        "",
        least=1.0 if is_realistic and nearness else 0.9,
    )
    yield row(f"{label}: nothing at all, of those", _share(silent), "")
    less = sum(library.full.values()) / _mean(spent)
    yield row(f"{label}: times fewer tokens than all", less, "x", least=50)
    yield row(f"{label}: tokens where none is needed, mean", _mean(idle), "tokens")


def _measure_cost(skills: Mapping[str, Skill]) -> Iterator[Row]:
    prompts, index = load_prompts(), build_index(skills.values())
    started = time.process_time()
    for _, text in prompts:
        choose_skills(skills, index, text, most=_MOST)
    spent = 1000 * (time.process_time() - started) / len(prompts)
    yield row("choosing for one task, by words", spent, "ms CPU")
    started = time.process_time()
    build_index(skills.values())
    yield row("indexing the skills", 1000 * (time.process_time() - started), "ms CPU")


def _compare(skills: Mapping[str, Skill]) -> dict[str, dict[str, float]] | None:
    """Compare all prompts by the vectors of the librarian's index, as a session does with ``vector``."""
    embedder = embed_text.load_embedder()
    if embedder is None:
        return None
    knowledge, nearest = KnowledgeIndex.open(None), NearestChunks(embedder)
    for document in describe_routes(skills.values()):
        knowledge.put_document(document.kind, document.ref, document.title, document.text)
    while texts := knowledge.list_unembedded(64):
        knowledge.put_vectors(
            [(key, embed_text.pack_vector(embedder.embed(text))) for key, text in texts]
        )
    prompts = [text for group in list_groups().values() for _, text in group]
    return {text: compare_routes(knowledge, nearest, text) for text in prompts}


def list_groups() -> dict[str, list[Prompt]]:
    """Return the prompts by what the ranking knows of them."""
    return {
        "tuned": load_prompts(),
        "unseen": load_prompts("unseen_prompts.tsv"),
        "fresh": load_prompts("fresh_prompts.tsv"),
        "later": load_prompts("later_prompts.tsv"),
        "realistic": load_prompts("realistic_prompts.tsv"),
    }


def load_prompts(name: str = "prompts.tsv") -> list[Prompt]:
    """Return (acceptable skills, prompt); no skill for a prompt that needs none."""
    pairs = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        want, text = line.split("\t")
        pairs.append((frozenset() if want == "-" else frozenset(want.split(",")), text))
    return pairs


def install_skills(*, examples: bool = False) -> dict[str, Skill]:
    """Load the skills of the data, with their example requests or without. Their folders are gone then."""
    with tempfile.TemporaryDirectory() as folder:
        return _install(Path(os.path.realpath(folder)), examples=examples)


def _install(folder: Path, *, examples: bool) -> dict[str, Skill]:
    """Write the skills of the data as folders, each with a core of typical length, and load all layers."""
    requests: dict[str, list[str]] = {}
    for line in (DATA / "examples.tsv").read_text(encoding="utf-8").splitlines():
        name, request = line.split("\t")
        requests.setdefault(name, []).append(request)
    for line in (DATA / "skills.tsv").read_text(encoding="utf-8").splitlines():
        name, description = line.split("\t")
        (folder / name).mkdir()
        about = description.split(":")[0]
        lines = [
            f"- {about}, step {number}: look at it, change one thing, check what came of it."
            for number in range(1, _BODY_LINES)
        ]
        front = ["---", f"name: {name}", f"description: {_quote(description)}"]
        if examples:
            front += ["metadata:", f"  examples: {_quote(' | '.join(requests[name]))}"]
        text = "\n".join(front)
        (folder / name / "SKILL.md").write_text(
            f"{text}\n---\n# {name}\n" + "\n".join(lines) + "\n"
        )
    places = [SkillPlace("built-in", BUILT_IN), SkillPlace("user", folder)]
    loaded = load_skills(places)
    assert not loaded.problems, loaded.problems
    if examples:
        return dict(loaded.skills)
    return {name: replace(skill, examples=()) for name, skill in loaded.skills.items()}


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers)
