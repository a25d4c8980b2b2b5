"""How often a task's first packet names the file that is edited in the end, in simulated repositories.

Needs the recorded runs of :mod:`needed`. Their repositories are not there: each run gets one with the paths
that its outputs list, and the lines that they show; the edited file is filled up to the patch's last line.
That is a *small project*: the frame names nearly all of its files. For a *large* one, made-up files bring
them to the number that the real project has. The user types the recorded report; the packet is that of a
real session without a person.

*Before* is without a frame, and nothing is granted. With *what is proposed*, the files are approved that
cockpit finds in the report. The waves and calls of the demo's sessions are counted, too.
"""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from measure import Row, row
from needed import Recorded, load_runs
from recorded_sessions import only_reads

from cockpit.core.project_paths import locate_project
from cockpit.decide.measure_prompt import count_prompt
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.observe.count_tokens import count_tokens
from cockpit.store.context.facts import load_texts
from cockpit.store.db.database import Store
from cockpit.store.sessions.waves import wave_id_of

WAYS = {
    "before": RuntimeSettings(policy="ask", frame=False),
    "now": RuntimeSettings(policy="ask"),
    "now, with what is proposed": RuntimeSettings(policy="reads"),
}
SIZES = {"django": 6_400, "astropy": 1_900, "sqlfluff": 1_750, "pydicom": 480, "pylint-dev": 280}
"""Files of the projects, at about the recorded versions."""
SCENARIO = """
[[turn]]
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "The bench ends here." }
"""
FILLER = "    pass  # this line is not in the recorded run"
_LISTED = re.compile(r"(?:/testbed/|\./)?((?:[\w+-][\w.+-]*/)+[\w.+-]+\.\w+)(?::|$)")
"""A path at the beginning of a line, as ``find`` and ``grep`` print it."""
_LONG = re.compile(r"-[rwx-]{9}\S*\s+\d+ \w+ \w+\s+\d+ .{12} (\S+)$")
"""A file as ``ls -l`` prints it."""
_LS = re.compile(r"(?:^|&& *)ls(?: -\w+)*(?: ([\w./-]+))?\s*$")
_NUMBERED = re.compile(r"^\s*\d+[:\t-]")


@dataclass(frozen=True, slots=True)
class First:
    """What a first packet has of the edited file."""

    path: bool
    name: bool
    text: bool
    tokens: int


def rows() -> list[Row]:
    """The table of this bench."""
    table = asyncio.run(_measure_runs(load_runs()))
    for title, waves, calls in _play_demo():
        table += [
            row(f"demo, {title}: waves", waves, ""),
            row(f"demo, {title}: calls", calls, ""),
        ]
    return table


async def _measure_runs(runs: Sequence[Recorded]) -> list[Row]:
    found: dict[str, list[First]] = {}
    counts: dict[str, list[int]] = {}
    for run in runs:
        listed = list_files(run)
        large = listed | _make_up(run, listed)
        for project, files, ways in (
            ("small", listed, list(WAYS)),
            ("large", large, list(WAYS)[1:]),
        ):
            counts.setdefault(project, []).append(len(files))
            with tempfile.TemporaryDirectory() as folder:
                make_repository(Path(folder) / "project", files)
                for way in ways:
                    first = await measure_first(run, Path(folder), WAYS[way])
                    found.setdefault(f"{project}, {way}", []).append(first)
    table = [
        row(f"simulated {name} project: files, median", median(count), "")
        for name, count in counts.items()
    ]
    for way, firsts in found.items():
        of = f"of {len(firsts)}"
        table += [
            row(f"{way}: path in the packet", sum(f.path for f in firsts), of),
            row(f"{way}: base name in it", sum(f.name for f in firsts), of),
            row(f"{way}: its text in it", sum(f.text for f in firsts), of),
            row(f"{way}: prompt, median", median(f.tokens for f in firsts), "tokens"),
        ]
    return table


def _make_up(run: Recorded, listed: Mapping[str, str]) -> dict[str, str]:
    """Return empty files, ten in a folder, in or below folders that are listed and with names like theirs."""
    dice, made = random.Random(run.name), dict[str, str]()
    paths = [path.rpartition("/") for path in listed]
    places = [folder for folder, _, _ in paths if folder]
    stems = [name.rpartition(".")[0] or name for _, _, name in paths]
    most = SIZES[run.name.partition("__")[0]] - len(listed)
    while len(made) < most:
        place = dice.choice(places)
        if len(made) % 20:
            place += f"/{dice.choice(stems)}_{len(made)}"
        made |= {f"{place}/{dice.choice(stems)}_{len(made) + n}.py": "" for n in range(10)}
    return made


def list_files(run: Recorded) -> dict[str, str]:
    """Return the files that the run's outputs list, without those that it wrote itself, and their texts."""
    written = " ".join(a["command"] for a in run.actions if not only_reads(a["command"]))
    paths = {path for action in run.actions for path in _listed(action)}
    edited = _patched(run)
    # A bare name in a command that writes is most often a script of the agent's own.
    kept = {path for path in paths if "/" in path or path not in written} | set(edited)
    return {path: _shown_text(run, path, edited.get(path, 0)) for path in sorted(kept)}


def _listed(action: Mapping[str, str]) -> Iterator[str]:
    folder = _LS.search(action["command"])
    for line in action["output"].splitlines():
        if folder and (entry := _LONG.match(line)):
            below = (folder[1] or "").removeprefix("/testbed").strip("./")
            yield f"{below}/{entry[1]}".lstrip("/")
        elif listed := _LISTED.match(line):
            yield listed[1]


def _patched(run: Recorded) -> dict[str, int]:
    """Return the files of the run's patch in its order, with the last line of each that it shows."""
    files: dict[str, int] = {}
    patch = [a["output"] for a in run.actions if "+++ b/" in a["output"] and "@@" in a["output"]][
        -1
    ]
    name = ""
    for line in patch.splitlines():
        if line.startswith("+++ b/"):
            name = line[6:].split("\t")[0]
        elif name and (hunk := re.match(r"@@ -(\d+),(\d+)", line)):
            files[name] = int(hunk[1]) + int(hunk[2])
    return files


def _shown_text(run: Recorded, path: str, least: int) -> str:
    lines: dict[str, None] = {}
    for action in run.actions:
        if path in action["command"] and only_reads(action["command"]):
            lines |= dict.fromkeys(
                _NUMBERED.sub("", o) for o in action["output"].splitlines()[2:-1]
            )
    return "\n".join([*lines, *[FILLER] * (least - len(lines)), ""])


def make_repository(root: Path, files: Mapping[str, str]) -> None:
    """Make a repository of ``files`` with one commit."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=B", "-c", "user.email=b@example.invalid"]
    for command in (["init", "-q"], ["add", "-Af"], ["commit", "-qm", "As recorded"]):
        subprocess.run([*git, *command], check=True)


async def measure_first(run: Recorded, folder: Path, settings: RuntimeSettings) -> First:
    """Start the run's task in the repository ``folder / "project"``."""
    script = folder / "scenario.toml"
    script.write_text(SCENARIO, encoding="utf-8")
    words = run.task.partition("Consider the following PR description:\n")[2]
    words = words.partition("</pr_description>")[0].strip() or run.task
    async with open_runtime(locate_project(folder / "project"), settings) as runtime:
        session_id = await runtime.start(
            words, task_type="implement", model=f"script:{script}", interactive=False, is_typed=True
        )
        await runtime.run(session_id)
        prompt, packet = await runtime.rendered_prompt(wave_id_of(session_id, 1))
        whole = [entry.fact_id for _, entry in packet.rendered() if entry.level == "full"]
        texts = await runtime.store.read(lambda c: load_texts(c, whole))
    text = "\n".join(message.text for message in prompt.messages)
    path = next(iter(_patched(run)))
    base = path.rpartition("/")[2]
    return First(
        path in text or base in _drawn(text, path.removesuffix(base)),
        re.search(rf"(?<![\w.-]){re.escape(base)}(?![\w-])", text) is not None,
        f"file:{path}" in {fact.source_ref for fact in texts.values()},
        count_prompt(prompt, count_tokens),
    )


def _drawn(text: str, folder: str) -> list[str]:
    """Return the names that a frame has of a folder."""
    line = re.search(rf"^{re.escape(folder)}: (.*)$", text, re.MULTILINE)
    return line[1].split(", ") if line else []


def _play_demo() -> list[tuple[str, int, int]]:
    """Return the titles of the demo's sessions, with their waves and the agent's calls."""
    with tempfile.TemporaryDirectory() as folder:
        demo = [sys.executable, "-m", "cockpit", "demo", "--dir", folder]
        subprocess.run(demo, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        with Store.open(locate_project(Path(folder)).database) as store:
            return store.read_now(
                lambda c: c.execute(
                    "SELECT title, count(*), sum(json_array_length(calls_json))"
                    " FROM plans JOIN sessions USING(session_id)"
                    " GROUP BY session_id ORDER BY sessions.rowid"
                ).fetchall()
            )
