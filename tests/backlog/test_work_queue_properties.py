"""The queue is, after whatever happened, what would be worked out from the tables anew."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from examples import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from work_world import opened, tables_of_the_queue, worked_out_anew

from cockpit.backlog import service
from cockpit.core.errors import CockpitError
from cockpit.store.backlog import handoffs, wip, work_queue
from cockpit.store.backlog.dependencies import DependencyCycle

PATHS = st.lists(
    st.sampled_from(["src", "src/a.py", "src/b.py", "docs/*.md", "docs", "lib", "./lib/x.py"]),
    max_size=2,
)
STATUS = st.sampled_from(["todo", "in_progress", "review", "done", "blocked", "archived"])
PRIORITY = st.sampled_from(["P0", "P1", "P2", "P3"])


class QueueMachine(RuleBasedStateMachine):
    """Anything that can happen to a backlog, in any order."""

    epics = Bundle("epics")
    stories = Bundle("stories")
    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.work = opened(self.folder)

    def teardown(self) -> None:
        kept = self.work.read(tables_of_the_queue)
        self.work.store.write_now(work_queue.rebuild)
        assert self.work.read(tables_of_the_queue) == kept
        self.work.store.close()
        shutil.rmtree(self.folder)

    @initialize(target=epics, priority=PRIORITY)
    def begun(self, priority: str) -> str:
        return self.work.epic(priority=priority)

    @initialize(target=tasks, files=st.lists(PATHS, min_size=5, max_size=5))
    def planned(self, files: list[list[str]]) -> MultipleResults[str]:
        """Five tasks, of which three are a chain."""
        made = [self.work.task(files=paths) for paths in files]
        self.work.depend(made[2], made[1])
        self.work.depend(made[1], made[0])
        return multiple(*made)

    @rule(target=epics, priority=PRIORITY)
    def epic(self, priority: str) -> str:
        return self.work.epic(priority=priority)

    @rule(target=stories, epic=st.none() | epics)
    def story(self, epic: str | None) -> str:
        return self.work.story(epic)

    @rule(target=tasks, story=st.none() | stories, files=PATHS, packages=PATHS)
    def task(self, story: str | None, files: list[str], packages: list[str]) -> str:
        return self.work.task(story, files=files, packages=packages)

    @rule(task=tasks, status=STATUS)
    def stands(self, task: str, status: str) -> None:
        self.work.stand(task, status)

    @rule(task=tasks, other=tasks, kind=st.sampled_from(["blocks", "requires", "relates_to"]))
    def depends(self, task: str, other: str, kind: str) -> None:
        try:
            self.work.depend(task, other, kind)
        except DependencyCycle as cycle:
            assert cycle.path[0] == cycle.path[-1] == task

    @rule(task=tasks, other=tasks)
    def depends_no_more(self, task: str, other: str) -> None:
        try:
            self.work.do(service.remove_dependency, task, other)
        except CockpitError as error:
            assert error.code == "not_found"

    @rule(epic=epics, priority=PRIORITY)
    def becomes_urgent(self, epic: str, priority: str) -> None:
        self.work.do(service.update_epic, epic, {"priority": priority})

    @rule(story=stories, epic=st.just("") | epics)
    def moves(self, story: str, epic: str) -> None:
        self.work.do(service.update_story, story, {"epic_id": epic})

    @rule(task=tasks, story=st.just("") | stories)
    def goes(self, task: str, story: str) -> None:
        self.work.do(service.update_task, task, {"story_id": story})

    @rule(task=tasks, files=PATHS)
    def declares(self, task: str, files: list[str]) -> None:
        self.work.do(service.update_task, task, {"files": files})

    @rule(task=tasks, files=PATHS)
    def modifies(self, task: str, files: list[str]) -> None:
        self.work.do(wip.update, task, {"files_modified": files})

    @rule(task=tasks, files=PATHS)
    def hands_over(self, task: str, files: list[str]) -> None:
        self.work.do(handoffs.set_handoff, task, "PASS", "It is done.", files)

    @rule(task=consumes(tasks))
    def goes_away(self, task: str) -> None:
        self.work.do(service.archive, task)

    @invariant()
    def the_queue_is_what_it_should_be(self) -> None:
        found = self.work.read(tables_of_the_queue)
        assert found == self.work.read(worked_out_anew)

    @invariant()
    def what_is_whole_stands_as_its_parts(self) -> None:
        open_in_done = self.work.read(
            lambda connection: connection.execute(
                "SELECT task_id FROM tasks t JOIN stories s USING(story_id)"
                " WHERE s.status IN ('done','archived') AND t.status NOT IN ('done','archived')"
                " UNION SELECT story_id FROM stories s JOIN epics e USING(epic_id)"
                " WHERE e.status IN ('done','archived') AND s.status NOT IN ('done','archived')"
            ).fetchall()
        )
        assert open_in_done == []


TestQueue = pytest.mark.search(QueueMachine.TestCase)
TestQueue.settings = settings(
    max_examples=examples(10),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
