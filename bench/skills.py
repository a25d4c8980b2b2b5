"""Which skills a task gets, with 60 installed: hits on labelled prompts, and tokens against loading all.

The 53 skills of ``data/skills/skills.tsv`` are realistic descriptions beside cockpit's own seven; their
bodies are generated, of one typical length. The prompts of ``prompts.tsv`` were written by hand for this
bench by who wrote the ranking, before it: some without a word of the description, some that need no skill
(``-``). Every second one was used to tune weights, thresholds and vocabulary; the others were only counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import Row, row

from cockpit.core.skills.skill import Skill
from cockpit.core.skills.skill_layers import SkillPlace, load_skills
from cockpit.loop.skills.skill_shelf import make_skill_fact
from cockpit.orient.skills.choose_skills import choose_skills
from cockpit.orient.skills.rank_skills import build_index, rank_skills

DATA = Path(__file__).resolve().parent / "data" / "skills"
BUILT_IN = Path(__file__).resolve().parent.parent / "cockpit" / "data" / "skills"
_BODY_LINES = 40
_MOST = 3


def rows() -> Iterator[Row]:
    """Yield hits and quiet negatives by half, tokens, and what a ranking costs."""
    with tempfile.TemporaryDirectory() as made:
        skills = _install(Path(os.path.realpath(made)))
        yield from _measure(skills)


def _measure(skills: dict[str, Skill]) -> Iterator[Row]:
    index = build_index(skills.values())
    yield row("skills installed", len(skills), "", least=60)
    tokens = {name: make_skill_fact(skill).cost.full for name, skill in skills.items()}
    prompts = load_prompts()
    chosen = [
        (want, [choice.name for choice in choose_skills(skills, index, text, most=_MOST)])
        for want, text in prompts
    ]
    ranked = [[each.name for each in rank_skills(index, text)[:_MOST]] for _, text in prompts]
    for half, start in (("tuned half", 0), ("held-out half", 1)):
        part = chosen[start::2]
        positive = [(want, names) for want, names in part if want]
        quiet = [not names for want, names in part if not want]
        hits = [bool(want & set(names)) for want, names in positive]
        first = [bool(names) and names[0] in want for want, names in positive]
        in_rank = [
            bool(want & set(names))
            for (want, _), names in zip(part, ranked[start::2], strict=True)
            if want
        ]
        count = len(hits)
        yield row(f"{half}: hit@3 of what is loaded, {count} prompts", _share(hits), "", least=0.9)
        yield row(f"{half}: hit@1 of what is loaded", _share(first), "")
        yield row(f"{half}: hit@3 of the ranking, without its threshold", _share(in_rank), "")
        yield row(f"{half}: nothing loaded, of {len(quiet)} that need none", _share(quiet), "")
    loaded = [sum(tokens[name] for name in names) for want, names in chosen if want]
    everything = sum(tokens.values())
    yield row(
        "skills loaded for a task that needs one, mean", _mean([len(n) for w, n in chosen if w]), ""
    )
    yield row("tokens of loading all", everything, "tokens")
    yield row("tokens loaded for a task that needs a skill, mean", _mean(loaded), "tokens")
    yield row("times less, task that needs a skill", everything / _mean(loaded), "x", least=50)
    over_all = [sum(tokens[name] for name in names) for _, names in chosen]
    yield row("times less, over all prompts", everything / _mean(over_all), "x")
    started = time.process_time()
    for _, text in prompts:
        choose_skills(skills, index, text, most=_MOST)
    yield row(
        "choosing for one task", 1000 * (time.process_time() - started) / len(prompts), "ms CPU"
    )
    started = time.process_time()
    build_index(skills.values())
    yield row("indexing the skills", 1000 * (time.process_time() - started), "ms CPU")


def load_prompts() -> list[tuple[frozenset[str], str]]:
    """Return (acceptable skills, prompt); no skill for a prompt that needs none."""
    pairs = []
    for line in (DATA / "prompts.tsv").read_text(encoding="utf-8").splitlines():
        want, text = line.split("\t")
        pairs.append((frozenset() if want == "-" else frozenset(want.split(",")), text))
    return pairs


def _install(folder: Path) -> dict[str, Skill]:
    """Write the skills of the data as folders, each with a core of typical length, and load all layers."""
    for line in (DATA / "skills.tsv").read_text(encoding="utf-8").splitlines():
        name, description = line.split("\t")
        (folder / name).mkdir()
        about = description.split(":")[0]
        lines = [
            f"- {about}, step {number}: look at it, change one thing, check what came of it."
            for number in range(1, _BODY_LINES)
        ]
        text = "\n".join(
            ["---", f"name: {name}", f"description: '{description.replace(chr(39), chr(39) * 2)}'"]
        )
        (folder / name / "SKILL.md").write_text(
            f"{text}\n---\n# {name}\n" + "\n".join(lines) + "\n"
        )
    places = [SkillPlace("built-in", BUILT_IN), SkillPlace("user", folder)]
    loaded = load_skills(places)
    assert not loaded.problems, loaded.problems
    return dict(loaded.skills)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers)
