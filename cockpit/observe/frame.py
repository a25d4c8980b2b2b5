"""The frame of a session's first wave: where the task is, in at most 700 tokens.

Names of tracked files, the branch and the state of the checkout, the last commits, languages, the tests, the
date and the platform. The same repository and date give the same text. It is data of the repository: names
and subjects are spelled out where they would steer a terminal, secrets are masked, and files that hold
secrets are not named. See ``docs/reference/loop.md``, the frame.
"""

from __future__ import annotations

import asyncio
import heapq
import platform
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from msgspec import Struct, field

from cockpit.access.run_program import Finished, ProgramMissing, run_git
from cockpit.access.secret_files import is_sensitive
from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import CockpitError
from cockpit.core.fenced_text import make_visible
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.observe.count_tokens import count_tokens
from cockpit.observe.preview_cost import printable_path
from cockpit.observe.project_files import list_tracked
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.rendered_cost import with_cost
from cockpit.observe.sources.stored_records import LastTests
from cockpit.observe.test_command import detect_test_command, find_test_environment
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
_LONGEST_NAME = 60
_MOST_LANGUAGES = 4
_ROOT_NAMES, _NAMES, _DEEP_NAMES = 40, 16, 12
"""Names of one line: of the root, of its folders, and of those below them."""
_MOST_MISFITS = 6
"""Folders in a row that have no room, after which no smaller one is tried."""

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
    status, subjects, paths = await asyncio.gather(
        _ask_git(ground.root, "status", "--porcelain=v2", "--branch", "-z"),
        _ask_git(ground.root, "log", f"-{_SUBJECTS}", "--format=%s", *_revision(ground)),
        _list_paths(ground),
    )
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
    full = mask("\n".join([*lines, *_draw_tree(paths, head, is_tracked=_has_git(status))]))
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
    elif upstream:
        where += _compare(_shorten(upstream), ahead, behind)
    counts = [f"{pluralize(changed, 'file')} changed"] if changed else []
    counts += [f"{untracked:,} untracked"] if untracked else []
    said = ", ".join(counts) or "clean"
    return f"{where}; {'at least ' if status.truncated else ''}{said}"


def _compare(upstream: str, ahead: str, behind: str) -> str:
    if (ahead, behind) == ("0", "0"):
        return f", level with {upstream}"
    return f", {ahead} ahead of and {behind} behind {upstream}"


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
    said = f"tests: {_shorten(command)}" + (f" ({origin})" if origin else "")
    last = tests.last
    if last is None:
        return f"{said}; not run yet"
    how = "passed" if last.is_green else "failed"
    return f"{said}; the last run {how} on {last.at[:10]}: {_shorten(last.summary)}"


def _name_languages(paths: Sequence[str]) -> str:
    counts = Counter(
        language
        for path in paths
        if (language := _LANGUAGES.get(path.rpartition(".")[2].lower())) is not None
    )
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_LANGUAGES]
    return ", ".join(f"{language} {count:,}" for language, count in ranked)


class _Folder(Struct):
    """A folder of tracked files."""

    files: list[str] = field(default_factory=list)
    folders: dict[str, _Folder] = field(default_factory=dict)
    count: int = 0
    """Files in it and below."""


def _draw_tree(paths: Sequence[str] | None, head: str, *, is_tracked: bool) -> list[str]:
    """Return lines that name files, as far as there is room: the root's, those of its folders, and then
    those of the largest folders below."""
    if paths is None:
        return ["the files could not be listed"]
    root = _build_tree(paths)
    title = pluralize(root.count, "tracked file" if is_tracked else "file")
    room = MOST_TOKENS - _AROUND - count_tokens(f"{head}\n{title}\n")
    drawn: dict[str, str] = {}
    misfits = 0
    # The root, then its folders, then those below; the larger first.
    queue: list[tuple[int, int, str, _Folder]] = [(0, 0, "", root)]
    while root.count and queue and misfits < _MOST_MISFITS:
        depth, _, path, folder = heapq.heappop(queue)
        most = (_ROOT_NAMES, _NAMES)[depth] if depth < 2 else _DEEP_NAMES
        while len(folder.folders) == 1 and not folder.files and path:
            name, folder = next(iter(folder.folders.items()))
            path = f"{path}{name}/"
        line = _draw_folder(path, folder, most)
        cost = count_tokens(f"{line}\n")
        if cost > room:
            line = _draw_folder(path, folder, most // 4)
            cost = count_tokens(f"{line}\n")
        if cost > room:
            misfits += 1
            continue
        misfits = 0
        room -= cost
        drawn[path] = line
        for name, below in folder.folders.items():
            if not is_sensitive(f"{path}{name}/x"):
                heapq.heappush(queue, (min(depth + 1, 2), -below.count, f"{path}{name}/", below))
    return [title, *(drawn[path] for path in sorted(drawn))]


def _build_tree(paths: Sequence[str]) -> _Folder:
    root = _Folder()
    for path in paths:
        *places, name = path.split("/")
        folder = root
        folder.count += 1
        for place in places:
            below = folder.folders.get(place)
            if below is None:
                below = folder.folders[place] = _Folder()
            folder = below
            folder.count += 1
        folder.files.append(name)
    return root


def _draw_folder(path: str, folder: _Folder, most: int) -> str:
    names = list(_name_entries(path, folder))
    shown = names[:most]
    if len(names) > most:
        shown.append(f"… {len(names) - most:,} more")
    return f"{_spell(path) or './'}: {', '.join(shown)}"


def _name_entries(path: str, folder: _Folder) -> Iterator[str]:
    """Yield the names in a folder: folders with the number of their files, then files; hidden ones last."""
    for name, below in sorted(folder.folders.items(), key=lambda each: _rank(each[0])):
        if not is_sensitive(f"{path}{name}/x"):
            yield f"{_spell(name)}/ {below.count:,}"
    for name in sorted(folder.files, key=_rank):
        if not is_sensitive(f"{path}{name}"):
            yield _spell(name)


def _rank(name: str) -> tuple[bool, str]:
    return name.startswith("."), name


def _spell(name: str) -> str:
    shown = printable_path(name)
    if len(shown) <= _LONGEST_NAME:
        return shown
    return mask(shown)[: _LONGEST_NAME - 1] + "…"
