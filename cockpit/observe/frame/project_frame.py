"""The frame of a session's first wave: where the task is, in at most 700 tokens.

Names of tracked files, the branch and the state of the checkout, the last commits, languages, the tests, the
date and the platform. The same repository and date give the same text. It is data of the repository: names
and subjects are spelled out where they would steer a terminal, secrets are masked, and files that hold
secrets are not named. See ``docs/reference/loop.md``, the frame.
"""

from __future__ import annotations

import asyncio
import platform
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from msgspec import Struct

from cockpit.access.run_program import Finished, ProgramMissing, run_git
from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import make_visible
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.frame.name_tree import draw_tree
from cockpit.observe.frame.test_command import detect_test_command, find_test_environment
from cockpit.observe.project_files import list_tracked
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.rendered_cost import with_cost
from cockpit.observe.sources.stored_records import LastTests
from cockpit.store.context.facts import Fact, Level

FRAME = "frame"
"""The source of the fact, and the item of its request."""
MOST_TOKENS = 700
"""Tokens of the frame as a prompt shows it."""
GIT_TIMEOUT_S = 10.0
"""Seconds that git may take to say what it knows; after that the frame says that it did not."""

_AROUND = 20
"""Tokens of what a prompt writes around the text."""
_UTILITY = 600_000
_SUBJECTS = 3
_LONGEST, _LONGEST_TOKENS = 100, 45
"""Characters, and tokens, of a subject, a branch or a test run's summary."""
_MOST_LANGUAGES = 4

_LANGUAGES = {
    ending: language
    for language, endings in {
        "Python": "py pyi", "JavaScript": "js jsx mjs cjs", "TypeScript": "ts tsx", "Go": "go",
        "Rust": "rs", "Java": "java", "Kotlin": "kt kts", "Scala": "scala", "C": "c h",
        "C++": "cc cpp cxx hpp hh", "C#": "cs", "Ruby": "rb", "PHP": "php", "Perl": "pl pm",
        "Swift": "swift", "Objective-C": "m mm", "Dart": "dart", "Elixir": "ex exs", "Erlang": "erl",
        "Haskell": "hs", "OCaml": "ml mli", "Clojure": "clj cljs", "Lua": "lua", "R": "r",
        "Julia": "jl", "Shell": "sh bash zsh fish", "PowerShell": "ps1", "SQL": "sql", "HTML": "html htm",
        "CSS": "css scss sass less", "Vue": "vue", "Svelte": "svelte", "Terraform": "tf", "Zig": "zig",
        "Jupyter": "ipynb", "Markdown": "md", "reStructuredText": "rst",
    }.items()
    for ending in endings.split()
}  # fmt: skip


class TestGround(Struct, frozen=True):
    """What the frame needs to know of the tests besides the project's files."""

    __test__ = False  # not a test of pytest's

    home: Path
    """The main checkout, whose virtual environment is used."""
    environment: Mapping[str, str]
    """That of commands."""
    configured: str | None = None
    """``[work] test_command``."""
    last: LastTests | None = None


async def read_frame(ground: ProjectSnapshot, tests: TestGround, date: str) -> Fact:
    """Return the frame of a wave whose pinned ``date`` this is. What cannot be read is said in it."""
    status = await _ask_git(ground.root, "status", "--porcelain=v2", "--branch", "-z")
    subjects = await _ask_git(
        ground.root, "log", f"-{_SUBJECTS}", "--format=%s", *_revision(ground)
    )
    paths = await _list_paths(ground)
    return await asyncio.to_thread(_make_fact, ground, tests, date, status, subjects, paths)


def _revision(ground: ProjectSnapshot) -> tuple[str, ...]:
    return () if ground.rev is None else (ground.rev,)


async def _ask_git(root: Path, *arguments: str) -> Finished | None:
    """Return what git says; None where there is no git, or it is not to be run here."""
    try:
        return await run_git(*arguments, cwd=root, timeout_s=GIT_TIMEOUT_S)
    except (ProgramMissing, CockpitError):
        return None


async def _list_paths(ground: ProjectSnapshot) -> Sequence[str] | None:
    try:
        return await list_tracked(ground)
    except CockpitError:
        return None


def _make_fact(
    ground: ProjectSnapshot,
    tests: TestGround,
    date: str,
    status: Finished | None,
    subjects: Finished | None,
    paths: Sequence[str] | None,
) -> Fact:
    state = _describe_state(status)
    lines = [f"{date}, {platform.system()} {platform.machine()}", state]
    if ground.rev is not None:
        lines.append(f"files are those of commit {ground.rev[:12]}")
    if subjects is not None and subjects.ok and subjects.text.strip():
        lines.append("last commits, newest first:")
        lines += [f"- {_shorten(line)}" for line in subjects.text.splitlines()[:_SUBJECTS]]
    lines.append(_describe_tests(ground.root, tests))
    if languages := _name_languages(paths or ()):
        lines.append(f"languages: {languages}")
    head = mask("\n".join(lines))
    room = MOST_TOKENS - _AROUND - count_tokens(f"{head}\n")
    full = mask("\n".join([*lines, *draw_tree(paths, room, is_tracked=_has_git(status))]))
    reference = mask(f"the project as the task began: {state}")
    return with_cost(
        Fact(
            source_type=FRAME,
            source_ref=FRAME,
            band="situational",
            full=Level(full, count_tokens(full)),
            outline=Level(head, count_tokens(head)),
            reference=Level(reference, count_tokens(reference)),
            provenance={"sha256": text_digest(full)},
            dedupe_key=FRAME,
            utility=_UTILITY,
        )
    )


def _has_git(status: Finished | None) -> TypeGuard[Finished]:
    """Whether git said what has changed, or began to: a list that is too long was cut."""
    return status is not None and (status.ok or status.truncated)


def _shorten(text: str) -> str:
    """Return one short line of foreign text; masked first, because of a cut secret nothing is recognised."""
    whole = make_visible(" ".join(mask(text).split()))
    line = whole[:_LONGEST]
    while (tokens := count_tokens(line)) > _LONGEST_TOKENS:
        line = line[: len(line) * _LONGEST_TOKENS // tokens]
    return line if line == whole else f"{line[:-1]}…"


def _describe_state(status: Finished | None) -> str:
    if status is not None and status.timed_out:
        return "git took too long to say what has changed"
    if not _has_git(status):
        return "no git repository"
    head, commit, upstream, ahead, behind = "", "", "", "0", "0"
    changed = untracked = 0
    entries = iter(status.stdout.decode("utf-8", "replace").split("\0"))
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.head":
                head = value
            elif name == "branch.oid":
                commit = value
            elif name == "branch.upstream":
                upstream = value
            elif name == "branch.ab":
                ahead, behind = (number.lstrip("+-") for number in value.split())
        elif kind in ("1", "2", "u"):
            changed += 1
            if kind == "2":
                next(entries, "")  # the name that it had
        elif kind == "?" and not rest.startswith(".cockpit/"):
            untracked += 1
    where = f"branch {_shorten(head)}" if head != "(detached)" else f"no branch, at {commit[:12]}"
    if commit == "(initial)":
        where += ", no commits yet"
    elif upstream and (ahead, behind) != ("0", "0"):  # a fresh clone is like its origin
        where += f", {ahead} ahead of and {behind} behind {_shorten(upstream)}"
    counts = [f"{pluralize(changed, 'file')} changed"] if changed else []
    counts += [f"{untracked:,} untracked"] if untracked else []
    changes = ", ".join(counts) or "clean"
    return f"{where}; {'at least ' if status.truncated else ''}{changes}"


def _describe_tests(root: Path, tests: TestGround) -> str:
    command, origin = tests.configured, "configured"
    if command is None:
        environment = find_test_environment(root, tests.home, tests.environment)
        argv = detect_test_command(root, environment)
        if argv is None:
            command, origin = "no command found", ""
        else:
            # Where the program lies is this machine's business.
            command, origin = shlex.join((Path(argv[0]).name, *argv[1:])), "found"
    line = f"tests: {_shorten(command)}" + (f" ({origin})" if origin else "")
    last = tests.last
    if last is None:
        return f"{line}; not run yet"
    how = "passed" if last.is_green else "failed"
    return f"{line}; the last run {how} on {last.at[:10]}: {_shorten(last.summary)}"


def _name_languages(paths: Sequence[str]) -> str:
    counts = Counter(
        language
        for path in paths
        if (language := _LANGUAGES.get(path.rpartition(".")[2].lower())) is not None
    )
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_LANGUAGES]
    return ", ".join(f"{language} {count:,}" for language, count in ranked)
