"""The guard against redundant reads on recorded runs of a coding agent, against an oracle of line ranges.

The runs (SWE-agent/mini-swe-agent, MIT, © 2025 Kilian A. Lieret and Carlos E. Jimenez) are in the folder
that ``COCKPIT_BENCH_DATA`` names. Every shell command passes the guard as a hook call of Codex would, over
files that are rebuilt from what the commands printed. After each command the guard is also asked for some
invented ranges of the same files.

The oracle shares nothing with the guard: it knows a few spellings of reading commands by regular expressions.
A read is redundant if all lines that it printed were printed before, at the same numbers and with the same
text, of a file with the same text; any other command that only reads, if the same command printed the same
before and nothing was written since.

Tokens are simulated: the recorded agents were not refused anything, so what they would have done instead is
not known. By the guard: the outputs that it refuses, in all later prompts of the run. By compiling: cockpit's
packets at a budget of 20,000 tokens beside the growing transcript. By handover: a new session with a handoff
of 2,000 tokens whenever a prompt passes 20,000.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import Row, row

from cockpit.hook.event_payload import Event
from cockpit.hook.guard.read_ledger import ReadLedger
from cockpit.hook.guard.redundant_reads import guard_event
from cockpit.observe.count_tokens import count_tokens

TOP = "/testbed"
HANDOVER_AT, HANDOFF = 20_000, 2_000
COMPILED_AT = 20_000
PROBES = 2
"""Invented reads after each recorded command."""
_FILE = r"(?P<path>[\w./+-]+)"
_FILE_2, _FILE_3 = _FILE.replace("path", "path2"), _FILE.replace("path", "path3")
_BEFORE = rf"(?:cat(?: -n)?(?: {_FILE})? ?\| ?|nl -ba {_FILE_2} ?\| ?)?"
_READS = [
    rf"cat(?: -n)? {_FILE}",
    rf"{_BEFORE}sed -n ['\"]?(?P<a>\d+),(?P<b>\d+|\$)p['\"]?(?: {_FILE_3})?",
    rf"(?:cat(?: -n)? {_FILE} ?\| ?)?head (?:-n ?)?-?(?P<n>\d+)(?: {_FILE_2})?",
    rf"head (?:-n ?)?-?(?P<n>\d+) {_FILE} ?\| ?tail (?:-n ?)?-?(?P<m>\d+)",
    rf"tail (?:-n ?)?-?(?P<m>\d+) {_FILE}",
    rf"tail -n \+(?P<a>\d+) {_FILE}",
]
_WRITES = re.compile(
    r"(?<![0-9&=-])>>?\s*(?!&|/dev/null)[\w./$\"'{]|\bsed\b[^|;&]*\s-i|\b(?:tee|cp|mv|rm|touch|patch|mkdir|chmod|ln)\s"
    r"|\bgit\s+(?:checkout|stash|apply|reset|restore|revert|commit|add|clean|pull|merge)\b"
)
_RUNS = re.compile(r"\b(?:python\d?|pytest|tox|pip|make|bash|sh|\./\S+|node|npm|perl|eval|xargs)\b")
_SEARCH = re.compile(
    r"\s*(?:grep|egrep|fgrep|rg|git (?:diff|log|show|grep|blame)|sed -n|awk|cat|head|tail|nl)\b"
)


@dataclass(frozen=True, slots=True)
class Command:
    """One recorded command and what it printed."""

    text: str
    shown: str
    """What the agent got of the output."""
    is_cut: bool
    failed: bool
    prompt_tokens: int


@dataclass(slots=True)
class Version:
    """A file between two writes: the lines that were printed of it, by number."""

    number: int
    lines: dict[int, str] = field(default_factory=dict)
    total: int = 0

    def text(self, path: str) -> str:
        last = self.total or max(self.lines, default=0) + 40
        filler = f"{path} v{self.number}"
        return "".join(f"{self.lines.get(n, f'{filler} line {n}')}\n" for n in range(1, last + 1))


@dataclass(slots=True)
class Judged:
    """What the oracle says of one command: whether it is redundant, and the files as they are before it."""

    redundant: bool
    kind: str = ""
    """``lines``, ``repeated``, or empty for a command that is not a read to the oracle."""
    versions: dict[str, Version] = field(default_factory=dict)
    path: str = ""
    lines: tuple[int, int] = (1, 0)
    """First and last line that a read of lines printed."""
    printed: dict[str, frozenset[int]] = field(default_factory=dict)
    """By path: the lines of the file as it is now that were printed up to this command."""


def rows() -> list[Row]:
    """The table of this bench."""
    runs = list(_recorded())
    if not runs:
        return []
    right: dict[str, int] = {"lines": 0, "repeated": 0}
    redundant: dict[str, int] = {"lines": 0, "repeated": 0}
    refused = output_tokens = saved = saved_later = 0
    sent = handed = reads = 0
    probes = Probes(random.Random(14))
    with tempfile.TemporaryDirectory() as folder:
        for number, commands in enumerate(runs):
            judged = judge(commands)
            verdicts = guard(commands, judged, Path(folder).resolve() / str(number), probes)
            for at, (command, oracle, verdict) in enumerate(
                zip(commands, judged, verdicts, strict=True)
            ):
                tokens = count_tokens(command.shown)
                output_tokens += tokens
                reads += bool(oracle.kind)
                if oracle.redundant:
                    redundant[oracle.kind] += 1
                if not verdict:
                    continue
                refused += 1
                if oracle.redundant:
                    right[oracle.kind] += 1
                elif os.environ.get("COCKPIT_BENCH_DEBUG"):
                    print("  refused wrongly:", command.text[:160])
                saved += tokens
                saved_later += tokens * (len(commands) - at - 1)
            sent += sum(command.prompt_tokens for command in commands)
            handed += sum(_hand_over([command.prompt_tokens for command in commands]))
            if os.environ.get("COCKPIT_BENCH_DEBUG"):
                for command, oracle, verdict in zip(commands, judged, verdicts, strict=True):
                    if oracle.redundant and not verdict:
                        print(f"  missed ({oracle.kind}):", command.text[:160])
    all_right, all_redundant = sum(right.values()), sum(redundant.values())
    compiled = _measure_compiling()
    return [
        row(f"{len(runs)} runs: commands that read", reads, ""),
        row("redundant reads, by the oracle: of lines", redundant["lines"], ""),
        row("redundant reads, by the oracle: repeated commands", redundant["repeated"], ""),
        row("refused by the guard", refused, ""),
        row("precision", all_right / max(refused, 1), "of 1", least=0.99),
        row("recall", all_right / max(all_redundant, 1), "of 1", least=0.95),
        row(f"{probes.asked:,} invented reads between them, redundant", probes.redundant, ""),
        row("precision, invented reads", probes.right / max(probes.refused, 1), "of 1", least=0.99),
        row("recall, invented reads", probes.right / max(probes.redundant, 1), "of 1", least=0.95),
        row("tokens saved by the guard, of all outputs (simulated)", saved / output_tokens, "of 1"),
        row("tokens saved by the guard, of all prompts (simulated)", saved_later / sent, "of 1"),
        row(
            f"tokens saved by compiling to {COMPILED_AT:,}, of all prompts (simulated)",
            compiled,
            "of 1",
        ),
        row(
            f"tokens saved by handover at {HANDOVER_AT:,}, of all prompts (simulated)",
            1 - handed / sent,
            "of 1",
        ),
    ]


def _recorded() -> Iterator[list[Command]]:
    data = os.environ.get("COCKPIT_BENCH_DATA", "")
    folder = Path(data) / "agent-traces"
    if not data or not folder.is_dir():
        print("  skipped: COCKPIT_BENCH_DATA names no folder with agent-traces")
        return
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        yield [_read_command(line) for line in lines[1:]]


def _read_command(line: Mapping[str, Any]) -> Command:
    output = str(line["output"])
    head = re.search(r"<output_head>\n(.*?)</output_head>", output, re.DOTALL)
    whole = re.search(r"<output>\n(.*?)</output>", output, re.DOTALL)
    shown = (head or whole)[1] if head or whole else ""  # type: ignore[index]  # one of them is there
    failed = str(line.get("returncode")) != "0"
    return Command(
        str(line["command"]), shown, head is not None, failed, int(line.get("prompt_tokens") or 0)
    )


# --- The oracle. Nothing of cockpit is used from here to the end of `judge`.


def judge(commands: Sequence[Command]) -> list[Judged]:
    """Judge every command by what all of them printed."""
    judged = _follow(commands)
    final = _last_of_each_version(judged)
    printed: dict[tuple[str, str], set[int]] = {}
    for command, oracle in zip(commands, judged, strict=True):
        # A file that was written with the text that it had is the file that was printed.
        texts = {
            path: final[(path, version.number)].text(path)
            for path, version in oracle.versions.items()
        }
        if oracle.kind == "lines":
            before = printed.setdefault((oracle.path, texts[oracle.path]), set())
            numbers = set(range(oracle.lines[0], oracle.lines[1] + 1))
            oracle.redundant = bool(numbers) and numbers <= before and not command.is_cut
            before |= numbers
        oracle.printed = {
            path: frozenset(printed.get((path, text), ())) for path, text in texts.items()
        }
    return judged


def _follow(commands: Sequence[Command]) -> list[Judged]:
    """Follow the files through all commands: versions, printed lines, and repeated commands."""
    versions: dict[str, Version] = {}
    answers: dict[str, str] = {}
    judged: list[Judged] = []
    for command in commands:
        plain = _plain(command.text)
        ranged = _find_range(plain, command, versions)
        if ranged is not None:
            path, first, lines = ranged
            version = versions.setdefault(path, Version(0))
            known = [version.lines.get(first + at) for at in range(len(lines))]
            if any(old is not None and old != new for old, new in zip(known, lines, strict=True)):
                # Something wrote it without a sign that the oracle knows.
                version = versions[path] = Version(version.number + 1, {}, 0)
                answers.clear()
            version.lines |= {first + at: line for at, line in enumerate(lines)}
            _note_total(plain, first, lines, version, command)
            last = first + len(lines) - 1
            judged.append(Judged(False, "lines", dict(versions), path, (first, last)))
            continue
        only_reads = _SEARCH.match(plain) and not _WRITES.search(plain) and not _RUNS.search(plain)
        if only_reads and "`" not in plain and "$(" not in plain and "<<" not in plain:
            redundant = answers.get(plain) == command.shown and bool(command.shown)
            judged.append(Judged(redundant, "repeated", dict(versions)))
            answers[plain] = command.shown
            continue
        judged.append(Judged(False, "", dict(versions)))
        if _WRITES.search(plain) or "<<" in plain or _RUNS.search(plain):
            answers.clear()
        for path in list(versions):
            if _is_written(path, plain):
                versions[path] = Version(versions[path].number + 1)
    return judged


def _is_written(path: str, plain: str) -> bool:
    """Whether a command names the file as a target; what a program wrote shows when it is printed."""
    name = rf"(?:{TOP}/|\./)?{re.escape(path)}(?![\w/.-])"
    words = rf"[^|;&\n]*\s['\"]?{name}"
    return bool(
        re.search(rf">>?\s*['\"]?{name}", plain)
        or re.search(rf"\bsed\b[^|;&\n]*\s-i{words}", plain)
        or re.search(rf"\b(?:tee|mv|rm|patch|cp\s+\S+)\b{words}", plain)
        or re.search(
            r"\bgit\s+(?:checkout|stash|apply|reset|restore|revert|clean|pull|merge)\b", plain
        )
        or re.search(rf"open\(\s*['\"]{name}['\"],\s*['\"][wa]", plain)
    )


def _plain(text: str) -> str:
    """The command without comments on lines of their own, and without the folder that all of them run in."""
    lines = [line for line in text.strip().splitlines() if not line.lstrip().startswith("#")]
    plain = re.sub(rf"^cd {TOP}/? *(?:&&|;) *", "", "\n".join(lines).strip())
    return re.sub(r"^(sed -n .*[^|]) \| cat -n$", r"cat -n | \1", plain)


def _find_range(
    plain: str, command: Command, versions: Mapping[str, Version]
) -> tuple[str, int, list[str]] | None:
    """Path, first line and printed lines of a read of lines; None for any other command."""
    for pattern in _READS:
        match = re.fullmatch(pattern, plain)
        if match is None or command.failed:
            continue
        groups = match.groupdict()
        names = [groups.get(name) for name in ("path", "path2", "path3") if groups.get(name)]
        if len(names) != 1 or names[0] is None:
            return None
        path = re.sub(rf"^{TOP}/", "", os.path.normpath(names[0]))
        lines = command.shown.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        if command.is_cut:
            lines = lines[:-1]  # the last one may be half a line
        if (" -n " in plain.split("|")[0] and plain.startswith("cat")) or plain.startswith("nl"):
            lines = [re.sub(r"^\s*\d+\t", "", line) for line in lines]
        first = int(groups.get("a") or 1)
        if groups.get("m"):
            total = versions[path].total if path in versions else 0
            last = min(int(groups["n"]), total or 10**9) if groups.get("n") else total
            if not last:
                return None
            first = max(1, last - int(groups["m"]) + 1)
            if groups.get("n") and not total and len(lines) != int(groups["m"]):
                return None
        return path, first, lines
    return None


def _note_total(
    plain: str, first: int, lines: Sequence[str], version: Version, command: Command
) -> None:
    """Note how many lines the file has, where the command tells."""
    if command.is_cut or "tail" in plain:
        return
    wanted = re.search(r"(\d+),(\d+)p", plain)
    count = re.search(r"head (?:-n ?)?-?(\d+)", plain)
    if wanted:
        most = int(wanted[2]) - int(wanted[1]) + 1
    elif count:
        most = int(count[1])
    else:
        most = 10**9
    if lines and len(lines) < most:
        version.total = first + len(lines) - 1


# --- The guard, as the hook of an agent calls it.


def guard(
    commands: Sequence[Command], judged: Sequence[Judged], folder: Path, probes: Probes
) -> list[bool]:
    """Whether the guard refuses each command, over the files as they are before it."""
    root, state = folder / "project", str(folder / "state")
    root.mkdir(parents=True)
    ledger = ReadLedger(state, "codex", "s")
    written: dict[str, str] = {}
    final = _last_of_each_version(judged)
    verdicts: list[bool] = []
    for at, command in enumerate(commands):
        for path, version in judged[at].versions.items():
            text = final[(path, version.number)].text(path)
            if written.get(path) != text and _can_write(root / path):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
                written[path] = text
        call = {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "cwd": str(root),
            "tool_name": "Bash",
            "tool_input": {"command": command.text.replace(TOP, str(root))},
        }
        refused = guard_event(Event("codex", call), state, str(root)) is not None
        verdicts.append(refused)
        if refused:
            _forget_refusals(ledger)
        else:
            response = f"Exit code: {int(command.failed)}\nOutput:\n{command.shown}"
            after = {**call, "hook_event_name": "PostToolUse", "tool_response": response}
            guard_event(Event("codex", after), state, str(root))
        probes.take(call, judged[at], written, state)
    return verdicts


@dataclass(slots=True)
class Probes:
    """Invented reads between the recorded ones: any lines of any file that was printed, not carried out."""

    random: random.Random
    right: int = 0
    refused: int = 0
    redundant: int = 0
    asked: int = 0

    def take(
        self, call: Mapping[str, Any], oracle: Judged, written: Mapping[str, str], state: str
    ) -> None:
        """Ask for some lines of the files as they are."""
        paths = sorted(path for path in oracle.printed if path in written and oracle.printed[path])
        for path in self.random.sample(paths, min(PROBES, len(paths))):
            total = written[path].count("\n")
            edge = self.random.choice(sorted(oracle.printed[path]))
            first = max(1, edge - self.random.randrange(12))
            last = first + self.random.randrange(40)
            if first > total:
                continue
            arguments = {"command": f"sed -n '{first},{last}p' {path}"}
            asked = Event("codex", {**call, "tool_input": arguments})
            refused = guard_event(asked, state, str(call["cwd"])) is not None
            if refused:
                _forget_refusals(ReadLedger(state, "codex", "s"))
            is_redundant = set(range(first, min(last, total) + 1)) <= oracle.printed[path]
            self.asked += 1
            self.refused += refused
            self.redundant += is_redundant
            self.right += refused and is_redundant


def _last_of_each_version(judged: Sequence[Judged]) -> dict[tuple[str, int], Version]:
    """Every version with all lines that were ever printed of it."""
    return {
        (path, version.number): version
        for oracle in judged
        for path, version in oracle.versions.items()
    }


def _can_write(path: Path) -> bool:
    return not path.is_dir() and not any(parent.is_file() for parent in path.parents)


def _forget_refusals(ledger: ReadLedger) -> None:
    """A recorded agent asks again because nobody refused: not the second ask that the guard lets pass."""
    path = Path(ledger.path)
    kept = [line for line in path.read_text().split("\n") if not line.startswith('["refused"')]
    path.write_text("\n".join(kept))


# --- Tokens.


def _hand_over(prompts: Sequence[int]) -> list[int]:
    """The prompts of sessions that hand over when one passes the limit."""
    sizes, since = [], prompts[0]
    for number, size in enumerate(prompts):
        grown = size - since
        now = prompts[0] + (HANDOFF if since != prompts[0] else 0) + grown
        if now > HANDOVER_AT and number:
            since = size
            now = prompts[0] + HANDOFF
        sizes.append(min(now, size))
    return sizes


def _measure_compiling() -> float:
    """The share of a transcript's tokens that packets do not send, over all runs."""
    from needed import load_runs, run_packets, run_transcript

    packets = transcripts = 0
    for run in load_runs():
        packets += sum(run_packets(run, COMPILED_AT).sizes)
        transcripts += sum(run_transcript(run).sizes)
    return 1 - packets / transcripts
