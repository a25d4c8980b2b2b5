"""The next batch of an epic, a story or everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from backlog.work_world import Backlog, opened
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.store.backlog import queue_scope
from cockpit.store.backlog.queue_scope import Scope

pytestmark = pytest.mark.slow

ALL = Scope()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Backlog]:
    made = opened(tmp_path)
    yield made
    made.store.close()


def batch(work: Backlog, scope: Scope, limit: int = 50, held: tuple[str, ...] = ()) -> list[str]:
    found = work.read(lambda seen: queue_scope.next_batch(seen, scope, limit, held))
    return [one.task_id for one in found]


def ready(work: Backlog, scope: Scope) -> int:
    return int(work.read(lambda seen: queue_scope.count_ready(seen, scope)))


def test_only_tasks_of_the_scope_are_taken(work: Backlog) -> None:
    epic, other = work.epic(), work.epic(priority="P0")
    story, second, outside = work.story(epic), work.story(epic), work.story(other)
    first, *_ = [work.task(where) for where in (story, second, outside)]
    loose = work.task()
    assert batch(work, Scope("epic", epic)) == ["T-1", "T-2"]
    assert batch(work, Scope("story", second)) == ["T-2"]
    assert batch(work, ALL) == ["T-3", first, "T-2", loose]
    assert [ready(work, scope) for scope in (Scope("epic", epic), Scope("story", story), ALL)] == [
        2,
        1,
        4,
    ]


def test_two_that_depend_on_each_other_through_finished_work_are_apart(work: Backlog) -> None:
    first, second, third = work.task(), work.task(), work.task()
    work.depend(second, first)
    work.depend(third, second)
    work.stand(second, "done")
    assert batch(work, ALL) == [first]
    assert batch(work, ALL, held=(first,)) == []


CLAIMS = st.lists(st.sampled_from(["a", "a/b", "a/c", "b", "c/d.py", "e"]), max_size=2)
MADE = st.tuples(CLAIMS, st.sampled_from(["todo", "in_progress", "done"]), st.integers(0, 2))


def meet(ours: list[str], theirs: list[str]) -> bool:
    """Whether one of these paths is, or lies inside, one of those."""
    return any(
        one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
        for one in ours
        for other in theirs
    )


@pytest.mark.search
@settings(max_examples=examples(10), deadline=None)
@given(st.lists(MADE, max_size=10), st.integers(1, 4), st.integers(0, 2))
def test_a_batch_can_run_at_once_and_leaves_none_out_that_could(
    made: list[tuple[list[str], str, int]], limit: int, where: int
) -> None:
    """Against the definition, whatever the backlog: tasks in two stories and outside of any."""
    with TemporaryDirectory() as folder:
        work = opened(Path(folder))
        stories = [work.story(), work.story(), None]
        claims, standing, place = {}, {}, {}
        for files, status, at in made:
            task_id = work.task(stories[at], files=files)
            work.stand(task_id, status)
            claims[task_id], standing[task_id], place[task_id] = files, status, at
        scope = Scope("story", stories[where] or "") if where < 2 else ALL
        inside = [one for one in claims if where == 2 or place[one] == where]
        ready = [one for one in inside if standing[one] == "todo"]
        running = [one for one in claims if standing[one] == "in_progress"]
        expected: list[str] = []
        for one in ready:
            if not any(meet(claims[one], claims[other]) for other in (*running, *expected)):
                expected.append(one)
        assert batch(work, scope, limit) == expected[:limit]
        assert work.read(lambda seen: queue_scope.count_ready(seen, scope)) == len(ready)
        work.store.close()
