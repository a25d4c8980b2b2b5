"""The order of a plan of spec-kit: ``Phase 2: …`` begins when all of ``Phase 1: …`` is done.

Its tasks have labels, ``T004 [P] [US1] Parse feeds``. Within a phase they follow each other; neighbours with
``[P]`` go side by side, and so do phases of user stories. See ``docs/reference/plans.md``, syntax.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from cockpit.backlog.planning.plan import PlannedTask, Wait

_PHASE = re.compile(r"phase\s+\d+\b", re.IGNORECASE)
_USER_STORY = re.compile(r"phase\s+\d+\b.*\buser stor", re.IGNORECASE)
_LABEL = re.compile(r"T(\d{3,5})\s+(?P<marks>(?:\[(?:P|US\d+)\]\s*)*)(?P<words>\S.*)")


def read_label(words: str) -> tuple[int, bool, str] | None:
    """Return number, whether it may go beside its neighbours, and title of a task of spec-kit; else None."""
    label = _LABEL.fullmatch(words)
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
