"""Estimates on generated histories: how the error falls as a project learns. Seeded; no real tasks.

Each generated project has its own typical number of waves for a kind, 0.4 to 2.5 times the shipped default,
spread from task to task like real work (log-normal), larger for larger tasks. With outliers, one task in
thirty took fifty times as long. Nothing here says how wrong estimates of real tasks are: ``cockpit stats``
does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from measure import Row, row

from cockpit.core.text import pluralize
from cockpit.decide.planner.defaults import find_prior
from cockpit.decide.planner.estimate import (
    MOST_HISTORY,
    PastTask,
    Used,
    estimate_task,
    revise,
)

PROJECTS = 400
LEARNED = (0, 1, 3, 5, 10, 20, 40)
SPREAD = 0.5
SIZE_EXPONENT = 0.35
"""Not the estimator's own, which it cannot know."""
SEED = 20261123


@dataclass(frozen=True, slots=True)
class Project:
    """A generated project's tasks of one kind, oldest first."""

    tasks: tuple[PastTask, ...]


def rows() -> Iterator[Row]:
    """Yield the errors by history, the ranges, the revisions, and the time of an estimate."""
    plain, odd = generate(0.0), generate(1 / 30)
    errors = {count: errors_of(plain, count) for count in LEARNED}
    for count in LEARNED:
        label = f"generated: waves off, median, {pluralize(count, 'past task')}"
        yield row(label, 100 * errors[count][0], "%")
    yield row(
        "generated: error with 20 past tasks against none",
        errors[20][0] / errors[0][0],
        "×",
        most=0.8,
    )
    yield row("generated: within the range, none learned", 100 * errors[0][1], "%")
    yield row(
        "generated: within the range, 20 learned", 100 * errors[20][1], "%", least=70, most=None
    )
    yield row(
        "generated: error with outliers against without, 20 learned",
        errors_of(odd, 20)[0] / errors[20][0],
        "×",
        most=1.15,
    )
    yield row(
        "generated: error against that of the plain mean, with outliers",
        errors_of(odd, 20)[0] / mean_error(odd, 20),
        "×",
        most=0.8,
    )
    early, late = revised_errors(plain, 20, 0.25), revised_errors(plain, 20, 0.75)
    yield row("generated: waves off after a quarter of the task", 100 * early, "%")
    yield row("generated: waves off after three quarters", 100 * late, "%")
    yield row("generated: error at three quarters against a quarter", late / early, "×", most=1.0)
    past = plain[0].tasks[:MOST_HISTORY]
    prior, runs = find_prior("bug"), 500
    started = time.process_time()
    for _ in range(runs):
        estimate_task(past, prior, 1_500, usd_a_token=1e-6)
    yield row("one estimate from 40 past tasks", (time.process_time() - started) / runs * 1e6, "µs")


def generate(outliers: float) -> Sequence[Project]:
    """Return the projects; a share of ``outliers`` of their tasks took fifty times as long."""
    dice, prior = random.Random(SEED), find_prior("bug")
    projects = []
    for _ in range(PROJECTS):
        typical = prior.waves[1] * dice.uniform(0.4, 2.5)
        tasks = []
        for _ in range(max(LEARNED) + 1):
            size = round(prior.size * dice.lognormvariate(0, 0.7))
            waves = typical * (size / prior.size) ** SIZE_EXPONENT * dice.lognormvariate(0, SPREAD)
            factor = 50 if dice.random() < outliers else 1
            count = max(1, round(waves * factor))
            tasks.append(PastTask(count, round(count * dice.uniform(12_000, 28_000)), size))
        # What is estimated is an ordinary task: the outliers are in the history.
        last = tasks[-1]
        ordinary = max(1, round(last.waves / 50)) if last.waves > 400 else last.waves
        tasks[-1] = PastTask(ordinary, last.tokens, last.size)
        projects.append(Project(tuple(tasks)))
    return projects


def errors_of(projects: Sequence[Project], learned: int) -> tuple[float, float]:
    """Return the median error of the last task's waves, and the share within the range."""
    errors, inside = [], 0
    for project in projects:
        task, past = project.tasks[-1], project.tasks[-1 - learned : -1]
        estimate = estimate_task(tuple(reversed(past)), find_prior("bug"), task.size)
        errors.append(abs(task.waves - estimate.waves.likely) / estimate.waves.likely)
        inside += estimate.waves.contains(task.waves)
    return median(errors), inside / len(projects)


def mean_error(projects: Sequence[Project], learned: int) -> float:
    """Return the median error of the plain mean of the past tasks."""
    return median(
        abs(project.tasks[-1].waves - average) / average
        for project in projects
        if (average := mean(task.waves for task in project.tasks[-1 - learned : -1]))
    )


def revised_errors(projects: Sequence[Project], learned: int, share: float) -> float:
    """Return the median error of the estimate as it is revised after a share of the task."""
    errors = []
    for project in projects:
        task, past = project.tasks[-1], project.tasks[-1 - learned : -1]
        done = int(task.waves * share)
        used = Used(done, round(task.tokens * share))
        made = estimate_task(tuple(reversed(past)), find_prior("bug"), task.size)
        revised = revise(made, used)
        errors.append(abs(task.waves - revised.waves.likely) / revised.waves.likely)
    return median(errors)
