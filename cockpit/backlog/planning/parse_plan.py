"""A plan written in Markdown, read: headings are epics and stories, items of lists are tasks.

Tasks are headings such as ``Task 3: …``; where there are none, items with a box; where there are none,
all items. The same text always gives the same plan; no model is dependencies. What belongs to nothing is told
in the notes. A task waits for others by what the plan calls them: ``#3``, ``T-12`` or a title. The rules are
in ``docs/reference/plans.md``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.backlog import validation
from cockpit.backlog.planning.markdown_blocks import (
    Block,
    Headings,
    classify_headings,
    parse_blocks,
)
from cockpit.backlog.planning.plan import (
    MOST_TASKS,
    Plan,
    PlanEmpty,
    PlanInvalid,
    PlannedEpic,
    PlannedStory,
    PlannedTask,
    Wait,
    refuse_cycles,
)
from cockpit.backlog.planning.task_marks import Marks, read_detail, read_marks
from cockpit.core.errors import CockpitError

_NUMBER = re.compile(r"(?:task\s*#?|#)(\d+)", re.IGNORECASE)
_KNOWN = re.compile(r"T-(\d+)", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:(?<!\s)\s++)?+(?:[,;&]|\band\b)\s*+", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_NOTHING = frozenset({"", "-", "–", "—", "none", "nothing", "n/a"})


class DependencyRequest(Struct, frozen=True):
    """The task at ``task`` depends on what ``whom`` names, said on ``line``."""

    task: int
    kind: str
    whom: str
    line: int


def resolve_dependencies(
    tasks: Sequence[PlannedTask], requests: Iterable[DependencyRequest]
) -> tuple[Wait, ...]:
    """The dependencies, each once. Raises :class:`PlanInvalid` for words that name no task."""
    numbers = {task.number: place for place, task in enumerate(tasks)}
    titles: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        # A person leaves the path out: "after Add the index" of "Add the index in `src/index.py`".
        for title in dict.fromkeys((_plain(task.title), _plain(_CODE.sub("", task.title)))):
            titles.setdefault(title, []).append(place)
    waits: dict[tuple[int, int | str], Wait] = {}
    for request in requests:
        for name in _names(request.whom, titles):
            wait = _wait(request, name, numbers, titles)
            waits.setdefault((wait.task, wait.task_id if wait.on is None else wait.on), wait)
    return tuple(waits.values())


def _names(whom: str, titles: dict[str, list[int]]) -> list[str]:
    whom = whom.strip().rstrip(".")
    if _plain(whom) in _NOTHING:
        return []
    # A title may hold a comma or an "and" itself.
    return [whom] if _plain(whom) in titles else [part for part in _BETWEEN.split(whom) if part]


def _wait(
    request: DependencyRequest, name: str, numbers: dict[int, int], titles: dict[str, list[int]]
) -> Wait:
    if (match := _KNOWN.fullmatch(name)) is not None:
        return Wait(request.task, task_id=f"T-{int(match[1])}", kind=request.kind)
    if (number := _NUMBER.fullmatch(name)) is not None:
        place = numbers.get(int(number[1]))
        if place is None:
            raise PlanInvalid(f"Line {request.line}: there is no task #{number[1]} in this plan.")
        return Wait(request.task, place, kind=request.kind)
    title_start = _plain(name)
    places = titles.get(title_start) or sorted(
        {
            place
            for title, held in titles.items()
            if title.startswith(f"{title_start} ")
            for place in held
        }
    )
    if len(places) == 1:
        return Wait(request.task, places[0], kind=request.kind)
    which = "names several tasks" if places else "names no task"
    raise PlanInvalid(
        f"Line {request.line}: {name!r} {which} of this plan; write #3 for its third task, T-12 for one of"
        " the backlog, or the exact title."
    )


def _plain(words: str) -> str:
    return " ".join(words.strip().strip("\"'“”‘’`*_").split()).casefold()


LONGEST = 200_000
"""Characters of a plan that is read."""

LONGEST_LINE = 2_000
"""Characters of a heading, or of the first line of a task."""

_LABEL = re.compile(r"#(\d+)[:.)]?\s+(?P<words>.+)")
_BOLD = re.compile(r"(?:\*\*|__)(?P<words>.+?)(?:\*\*|__)\s*[:–—-]*\s*(?P<rest>.*)")
_PRIORITY = re.compile(r"^(?:\*\*)?Priority(?:\*\*)?:(?:\*\*)?\s*(P[0-3])\s*$", re.I | re.M)
_GAP = re.compile(r"\n{3,}")
_SHOWN = 60
_MOST_NOTES = 20
Made = TypeVar("Made")


def read_plan(text: str, task_types: Collection[str] = validation.TASK_TYPES) -> Plan:
    """The plan that ``text`` is; its tasks can have these types.

    Raises :class:`~cockpit.backlog.planning.plan.PlanInvalid`, which names the line, for a text without any
    task, one that is too long, and for dependencies on nothing or in a circle.
    """
    if len(text) > LONGEST:
        raise PlanInvalid(
            f"The plan has {len(text):,} characters and may have {LONGEST:,}; make it several plans."
        )
    reading = _Reading(classify_headings(parse_blocks(text)), task_types)
    reading.read()
    if not reading.tasks:
        raise PlanEmpty(
            "The plan has no task. Write each task as a list item, such as `- [ ] Add the endpoint`,"
            " under a heading for its story (docs/reference/plans.md describes the format), or let a"
            " model plan it: `cockpit plan FILE --model NAME`."
        )
    if len(reading.tasks) > MOST_TASKS:
        raise PlanInvalid(
            f"The plan has {len(reading.tasks)} tasks and may have {MOST_TASKS}; make it several plans."
        )
    tasks = _numbered(reading.tasks)
    titles = [part.title for part in reading.stories]
    waits = resolve_dependencies(tasks, reading.dependencies)
    pairs = {(wait.task, wait.on) for wait in waits}
    phases = order_phases(titles, tasks, reading.labelled, reading.beside)
    waits += tuple(wait for wait in phases if (wait.task, wait.on) not in pairs)
    refuse_cycles(tasks, waits)
    return Plan(
        tuple(_epic(part) for part in reading.epics),
        tuple(_story(part) for part in reading.stories),
        tasks,
        waits,
        tuple(_first(reading.notes)),
    )


def _first(notes: Sequence[str]) -> Iterator[str]:
    yield from notes[:_MOST_NOTES]
    if len(notes) > _MOST_NOTES:
        yield f"And {len(notes) - _MOST_NOTES:,} more such."


class _Part(Struct):
    """An epic or a story, while its words are still coming."""

    title: str
    line: int
    priority: str = ""
    task_type: str = ""
    epic: int | None = None
    words: list[str] = field(default_factory=list)


class _Reading(Struct):
    """A walk over the blocks: its current ``epic`` and ``story``, and what it has read so far."""

    text: Headings
    task_types: Collection[str]
    epics: list[_Part] = field(default_factory=list)
    stories: list[_Part] = field(default_factory=list)
    tasks: list[PlannedTask] = field(default_factory=list)
    dependencies: list[DependencyRequest] = field(default_factory=list)
    labelled: set[int] = field(default_factory=set)
    """The places of tasks with a label of spec-kit; :attr:`beside` of those with its ``[P]``."""
    beside: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    epic: int | None = None
    story: int | None = None
    group: str = ""

    def read(self) -> None:
        place = 0
        while place < len(self.text.blocks):
            block = self.text.blocks[place]
            place = self._heading(place) if block.kind == "heading" else self._below(place)

    def _heading(self, place: int) -> int:
        """Read a heading; return the place of the next block."""
        block, role = self.text.blocks[place], self.text.roles[place]
        words = self.text.named(place)
        if role == "task":
            end = self.text.ends[place]
            below = self.text.blocks[place + 1 : end]
            first = below[0].line if below else block.line
            number = self.text.number(place)
            self._task(words, _source(below, first), block.line, first, number=number)
            return end
        if role == "epic":
            self.epics.append(self._part(words, block.line))
            self.epic, self.story, self.group = len(self.epics) - 1, None, ""
        elif role == "story":
            self._begin_story(self._part(words, block.line))
        elif role == "group":
            self.group = words
        elif role == "prose":
            return self._prose(place)
        return place + 1

    def _below(self, place: int) -> int:
        block = self.text.blocks[place]
        taken = [item for item in block.items if self.text.is_task(item)]
        if not taken:
            self._words(block.source, block.line, self._sink())
            return place + 1
        for item in block.items:
            if item in taken:
                self._task(item.words, item.detail, item.line, item.line + 1, done=item.box == "x")
            else:
                self._words((f"- {item.words}", *item.detail), item.line, self._sink())
        return place + 1

    def _prose(self, place: int) -> int:
        """Add a heading without tasks, and the text below it, to its epic or story."""
        end, level = self.text.ends[place], self.text.blocks[place].level
        if self.text.epic_level is not None and level <= self.text.epic_level:
            sink = None
        elif self.text.story_level is not None and level <= self.text.story_level:
            sink = None if self.epic is None else self.epics[self.epic]
        else:
            sink = self._sink()
        head, *rest = self.text.blocks[place:end]
        self._words((f"**{head.words}**",), head.line, sink)
        if sink is not None:
            for block in rest:
                self._words(block.source, block.line, sink)
        return end

    def _sink(self) -> _Part | None:
        if self.story is not None:
            return self.stories[self.story]
        return None if self.epic is None else self.epics[self.epic]

    def _words(self, lines: Sequence[str], line: int, sink: _Part | None) -> None:
        if sink is not None:
            sink.words.append("\n".join(lines).strip())
            return
        words = " ".join(" ".join(lines).split())
        shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
        self.notes.append(f"Line {line} belongs to no epic or story and is left out: {shown}")

    def _part(self, words: str, line: int) -> _Part:
        _short(words, line)
        marks = read_marks(words, self.task_types)
        if marks.hours is not None or marks.waits:
            self.notes.append(
                f"Line {line}: hours and dependencies belong to tasks; here they stay in the title."
            )
            return _Part(words, line)
        return _Part(marks.title or words, line, marks.priority, marks.task_type)

    def _begin_story(self, part: _Part) -> None:
        if part.priority:
            self._no_priority(part.line, part.priority)
        part.epic = self.epic
        self.stories.append(part)
        self.story, self.group = len(self.stories) - 1, ""

    def _no_priority(self, line: int, priority: str) -> None:
        self.notes.append(f"Line {line}: a priority belongs to an epic; {priority} is left out.")

    def _task(
        self,
        words: str,
        lines: Sequence[str],
        line: int,
        below: int,
        *,
        done: bool = False,
        number: int = 0,
    ) -> None:
        if self.story is None and self.epic is not None:
            epic = self.epics[self.epic]
            self._begin_story(_Part(epic.title, epic.line))
        _short(words, line)
        place = len(self.tasks)
        if (label := _LABEL.fullmatch(words)) is not None:
            words, number = label["words"], int(label[1])
        elif (of_spec_kit := read_label(words)) is not None:
            number, is_beside, words = of_spec_kit
            self.labelled.add(place)
            if is_beside:
                self.beside.add(place)
        marks, about_title = _read_title(words, self.task_types)
        detail = read_detail(lines, below, self.task_types)
        for kind, whom in (*marks.waits, *detail.waits):
            self.dependencies.append(DependencyRequest(place, kind, whom, line))
        if marks.priority:
            self._no_priority(line, marks.priority)
        about = [self.group, about_title, detail.description]
        of_story = self.stories[self.story].task_type if self.story is not None else ""
        self.tasks.append(
            _checked(
                PlannedTask,
                number=number,
                title=marks.title,
                task_type=detail.task_type or marks.task_type or of_story or "feature",
                description="\n\n".join(each for each in about if each),
                acceptance_criteria=detail.acceptance,
                estimate_hours=detail.hours if detail.hours is not None else marks.hours,
                files=[*marks.files, *detail.files],
                packages=detail.packages,
                story=self.story,
                done=done,
                line=line,
            )
        )


def _short(words: str, line: int) -> None:
    if len(words) > LONGEST_LINE:
        raise PlanInvalid(
            f"Line {line}: {len(words):,} characters are too many for a title and what is said of it"
            f" ({LONGEST_LINE:,}); put the rest on lines below it."
        )


def _read_title(words: str, types: Collection[str]) -> tuple[Marks, str]:
    """What the first line of a task says, and of ``**Title**: what it is about`` the second half."""
    bold = _BOLD.fullmatch(words)
    if bold is None:
        return read_marks(words, types), ""
    marks, tail = read_marks(bold["words"], types), read_marks(bold["rest"], types)
    marks.task_type = marks.task_type or tail.task_type
    marks.hours = tail.hours if marks.hours is None else marks.hours
    marks.priority = marks.priority or tail.priority
    marks.files += tail.files
    marks.waits += tail.waits
    return marks, tail.title


def _source(blocks: Sequence[Block], first: int) -> tuple[str, ...]:
    """The lines of neighbouring blocks, with the blank ones between them."""
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - first - len(lines))
        lines += block.source
    return tuple(lines)


def _numbered(tasks: Sequence[PlannedTask]) -> tuple[PlannedTask, ...]:
    """Each with its number: the one that the plan gives it, else the next that is free."""
    used: dict[int, int] = {}
    for task in tasks:
        if task.number and used.setdefault(task.number, task.line) != task.line:
            raise PlanInvalid(
                f"Line {task.line}: #{task.number} is given already on line {used[task.number]}."
            )
    free = _free(used)
    return tuple(task if task.number else replace(task, number=next(free)) for task in tasks)


def _free(used: dict[int, int]) -> Iterator[int]:
    number = 0
    while True:
        number += 1
        if number not in used:
            yield number


def _epic(part: _Part) -> PlannedEpic:
    words = "\n\n".join(part.words)
    match = _PRIORITY.search(words)
    priority = match[1].upper() if match is not None else part.priority or "P2"
    about = _GAP.sub("\n\n", _PRIORITY.sub("", words)).strip()
    return _checked(
        PlannedEpic,
        title=part.title,
        description=about,
        priority=priority,
        line=part.line,
    )


def _story(part: _Part) -> PlannedStory:
    about = "\n\n".join(part.words).strip()
    return _checked(
        PlannedStory, title=part.title, description=about, epic=part.epic, line=part.line
    )


def _checked(kind: type[Made], **fields: Any) -> Made:
    """Return a record with checked values; raise :class:`PlanInvalid` with the line."""
    values = {
        name: value
        for name, value in fields.items()
        # The type was checked where it was read: what is not a type stays in the title.
        if name in ("title", "description", "acceptance_criteria", "files", "packages")
        or (name in ("estimate_hours", "priority") and value is not None)
    }
    try:
        return kind(**{**fields, **validation.changes(values, values)})
    except CockpitError as error:
        raise PlanInvalid(f"Line {fields['line']}: {error}") from error


_PHASE = re.compile(r"phase\s+\d+\b", re.IGNORECASE)
_USER_STORY = re.compile(r"phase\s+\d+\b.*\buser stor", re.IGNORECASE)
_SPEC_KIT_LABEL = re.compile(r"T(\d{3,5})\s+(?P<marks>(?:\[(?:P|US\d+)\]\s*)*)(?P<words>\S.*)")


def read_label(words: str) -> tuple[int, bool, str] | None:
    """Return number, whether it may go beside its neighbours, and title of a task of spec-kit; else None."""
    label = _SPEC_KIT_LABEL.fullmatch(words)
    if label is None:
        return None
    return int(label[1]), "[P]" in label["marks"], label["words"]


def order_phases(
    titles: Sequence[str],
    tasks: Sequence[PlannedTask],
    labelled: Collection[int],
    beside: Collection[int],
) -> Iterator[Wait]:
    """Yield what tasks wait for by the phases that their stories are; nothing in a plan without labels.

    ``titles`` are those of the stories; ``labelled`` are the places of tasks with a label, and ``beside`` of
    those that are marked ``[P]``.
    """
    if not labelled:
        return
    before: list[int] = []  # what the next phase waits for
    of_stories: list[int] = []  # the ends of the user stories that began after it
    for story, title in enumerate(titles):
        groups = list(_group(story, tasks, labelled, beside))
        if not groups or not _PHASE.match(title):
            continue
        if not _USER_STORY.match(title) and of_stories:
            before, of_stories = of_stories, []
        for earlier, later in zip([before, *groups], groups, strict=False):
            yield from (Wait(task, on) for task in later for on in earlier)
        if _USER_STORY.match(title):
            of_stories += groups[-1]
        else:
            before = groups[-1]


def _group(
    story: int, tasks: Sequence[PlannedTask], labelled: Collection[int], beside: Collection[int]
) -> Iterator[list[int]]:
    """Yield the tasks of a story that go side by side, in order."""
    group: list[int] = []
    for place, task in enumerate(tasks):
        if task.story != story:
            continue
        follows = place in labelled and not (place in beside and group and group[-1] in beside)
        if group and follows:
            yield group
            group = []
        group.append(place)
    if group:
        yield group
