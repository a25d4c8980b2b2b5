"""Relevance: the words of the task, and the files that the agent works with."""

from __future__ import annotations

from typing import Any

from orient_made import fact, profile

from cockpit.orient.fact_columns import columns_from_facts
from cockpit.orient.relate_facts import READ_FACTOR, WRITTEN_FACTOR, relate_facts
from cockpit.orient.score_facts import RELEVANCE_ONE, score_facts
from cockpit.store.context.facts import FactText


def related(*texts: tuple[str, str, str, dict[str, Any]]) -> list[tuple[int, int]]:
    """Relevance and factor, of (source type, reference, text, provenance)."""
    facts = [
        fact(ref, "objectives" if kind == "task" else "situational", source_type=kind, ref=ref,
             ordinal=number, position=1)
        for number, (kind, ref, _, _) in enumerate(texts, 1)
    ]  # fmt: skip
    by_id = {
        one.fact_id: FactText(one.fact_id, kind, ref, text, None, ref, provenance)
        for one, (kind, ref, text, provenance) in zip(facts, texts, strict=True)
    }
    columns = columns_from_facts(facts)
    found = relate_facts(columns, lambda ids: {name: by_id[name] for name in ids if name in by_id})
    scores = score_facts(columns, profile({}), len(texts), found)
    plain = score_facts(columns, profile({}), len(texts))
    for terms, times, worth, least in zip(
        found.terms, found.factor, scores.worth, plain.worth, strict=True
    ):
        factor = (RELEVANCE_ONE + 2 * terms) * times
        assert abs(worth - least * factor // RELEVANCE_ONE) <= factor
    return list(zip(found.terms.tolist(), found.factor.tolist(), strict=True))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": name, "arguments": arguments, "result": "", "status": "confirmed"}


def test_text_that_answers_the_task_is_relevant_and_the_best_has_all() -> None:
    task, near, far = related(
        ("task", "task:opening", "The resolve_path of the AutoReloader fails.", {}),
        ("file", "file:a.txt", "def resolve_path(self): reloader", {}),
        ("file", "file:b.txt", "nothing of this kind at all", {}),
    )
    assert (task[0], near[0], far[0]) == (0, RELEVANCE_ONE, 0)


def test_what_was_read_of_files_in_work_and_what_was_written_last_is_worked_with() -> None:
    kinds = related(
        ("file", "file:src/edited.py", "a", {}),
        *[("file", f"file:src/f{number}.py", "b", {}) for number in range(5)],
        ("exchange", "exchange:7.1", "c", call("edit_file", path="src/edited.py")),
        ("exchange", "exchange:8.1", "d", call("run", command="cat > one.py <<EOF")),
        ("exchange", "exchange:9.1", "e", call("run", command="cat > two.py <<EOF")),
        ("exchange", "exchange:10.1", "f", call("run", command="python src/f0.py")),
    )
    read, written = READ_FACTOR, WRITTEN_FACTOR
    assert [factor for _, factor in kinds] == [read, 1, 1, read, read, read, 1, written, written, 1]
