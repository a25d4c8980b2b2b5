"""Commands that only read: what they would read, as scope items for the gateway.

``run cat a.py`` would bring a file into the context past the gateway: without its place in the packet,
without the guard against repeated reads, under another approval. Such a command becomes a context request,
or is refused with the reason. Whether it only reads is for the judge of reads to say, as in hooks; here is
what it reads. A command that reads as part of its work (``make``, ``pytest``, a script) stays a command.
See ``docs/reference/actions.md``, reading commands.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.access.confined_paths import Confined
from cockpit.access.parse_shell import parse_shell
from cockpit.access.reads.git_reads import NAMES_SECRETS
from cockpit.access.reads.judge_reads import why_not_read_options
from cockpit.access.shell_commands import SHELLS, RanCommand, list_commands
from cockpit.access.shell_syntax import SimpleCommand, iter_items, iter_words
from cockpit.act.reading.file_programs import translate_program
from cockpit.act.reading.git_commands import translate_git
from cockpit.act.reading.scope import Folder, Reading

_SILENT = frozenset(
    {
        "echo",
        "printf",
        "true",
        ":",
        "cd",
        "pwd",
        "set",
        "exit",
        "read",
        "test",
        "[",
        "fi",
        "done",
        "}",
        "",
    }
)
"""Programs beside which a reading command still only reads."""

_FILTERS = frozenset(
    """
    cat head tail sed awk gawk grep egrep fgrep rg sort uniq cut tr nl tac rev column fold jq expand strings
    od xxd hexdump base64 paste
    """.split()  # noqa: SIM905 - thirty quoted words a line each are no easier to read
)
"""Programs that pass on what they read."""

_REFINING = frozenset({"head", "tail", "sed", "awk", "gawk", "grep", "egrep", "fgrep", "rg"})
"""Filters whose part of a file can be requested itself: ``cat a.py | head``."""

_PRINTING = frozenset({"echo", "printf", "cat", ""})
_GIVEN_FILES = frozenset({"xargs", "parallel", "find", "fd", "fdfind", "watch"})
_ASK = "Ask with request_context: file:PATH[:A-B], file:GLOB, search:REGEX in GLOB, diff:RANGE or log:RANGE."


def find_reading(
    argv: Sequence[str], confined: Confined, *, pinned_rev: bool = False
) -> Reading | None:
    """Return what a command would read; None when it is not a reading command.

    ``pinned_rev`` says that the session reads files from a revision.
    """
    commands = list_commands(argv)
    if not commands:
        return None
    pipelines: list[list[RanCommand]] = []
    for command in commands:
        if command.joined == "|" and pipelines:
            pipelines[-1].append(command)
        else:
            pipelines.append([command])
    readings = [_read_pipeline(pipeline, confined, pinned_rev) for pipeline in pipelines]
    present = [reading for reading in readings if reading is not None]
    present += _substituted_readings(argv, confined, pinned_rev)
    if not present:
        return None
    refusal = next((reading.refusal for reading in present if reading.refusal), "")
    items = tuple(dict.fromkeys(item for reading in present for item in reading.items))
    if refusal:
        return Reading(refusal=_explain(refusal))
    others = [
        pipeline[0].program
        for pipeline, reading in zip(pipelines, readings, strict=True)
        if reading is None and not (pipeline[0].program in _SILENT and not pipeline[-1].writes)
    ]
    if others:
        return Reading(
            refusal=f"This script reads and also runs {others[0] or 'something else'}. Run"
            f" that alone, and ask with request_context for {', '.join(items)}."
        )
    return Reading(items)


def _explain(refusal: str) -> str:
    return refusal if "sk for" in refusal else f"{refusal} {_ASK}"


def _read_pipeline(
    pipeline: Sequence[RanCommand], confined: Confined, pinned_rev: bool
) -> Reading | None:
    """Return what a pipeline prints of files; None when it does not, or writes it to a file."""
    if pipeline[-1].writes or pipeline[-1].program == "wc":
        return None
    if any(stage.program not in _FILTERS or not _only_reads(stage) for stage in pipeline[1:]):
        runner = next((each for each in pipeline[1:] if each.program in _GIVEN_FILES), None)
        return _given_files(runner) if runner is not None else None
    head = pipeline[0]
    reading = _read_command(head, confined, pinned_rev)
    if reading is None:
        readings = [_read_command(stage, confined, pinned_rev) for stage in pipeline[1:]]
        return next((each for each in readings if each is not None), None)
    if (
        len(pipeline) > 1
        and len(reading.items) == 1
        and head.program in ("cat", "nl", "bat", "batcat")
        and pipeline[1].program in _REFINING
    ):
        file = next(word for word in (*head.reads, *head.argv[1:]) if not word.startswith("-"))
        folder = Folder(confined, head.cwd, pinned_rev=pinned_rev)
        return translate_program((*pipeline[1].argv, file), folder) or reading
    return reading


def _read_command(command: RanCommand, confined: Confined, pinned_rev: bool) -> Reading | None:
    if command.writes:
        return None
    reading = _translate_command(command, confined, pinned_rev)
    # Nobody else runs a program or writes a file in the name of reading.
    if reading is not None and reading.items and not _only_reads(command):
        return None
    return reading


def _only_reads(command: RanCommand) -> bool:
    """Whether the judge knows the program and its options to only read, wherever it runs.

    Which files may be read the gateway decides, item by item.
    """
    if command.program in ("", "done", "}", "fi"):
        return True
    return why_not_read_options(command.argv) in ("", NAMES_SECRETS)


def _translate_command(command: RanCommand, confined: Confined, pinned_rev: bool) -> Reading | None:
    folder = Folder(confined, command.cwd, pinned_rev=pinned_rev)
    if command.program == "git":
        return translate_git(command.argv[1:], folder)
    if command.program in _GIVEN_FILES:
        return _given_files(command)
    if command.reads and (
        command.program in _FILTERS or command.program in ("", "done", "}", "fi")
    ):
        # `$(<file)`, `while read line; do …; done < file`, `head -5 < file`
        argv = command.argv if command.program in _FILTERS else ("cat",)
        return translate_program((*argv, *command.reads), folder)
    return translate_program(command.argv, folder)


def _given_files(command: RanCommand) -> Reading | None:
    """Refuse to print files that another program finds: ``find -exec cat``, ``xargs grep``."""
    words = set(command.argv[1:])
    if command.program in ("find", "fd", "fdfind") and not words & {
        *("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
    }:
        return None
    readers = [word for word in command.argv[1:] if word in _FILTERS - {"tr"}]
    if not readers or ("sed" in readers and any(word.startswith("-i") for word in words)):
        return None
    if words & {"-l", "-c", "-q", "-lE", "-rl"}:
        return None
    return Reading(refusal=f"Which files {readers[0]} reads is only known when it runs.")


def _substituted_readings(
    argv: Sequence[str], confined: Confined, pinned_rev: bool
) -> list[Reading]:
    """List the readings in substitutions whose text is printed: ``echo "$(cat a.py)"``."""
    if not any(word.rpartition("/")[2] in SHELLS for word in argv):
        return []
    readings: list[Reading] = []
    for item in iter_items(parse_shell(argv[-1])):
        program = item.words[0].text if isinstance(item, SimpleCommand) and item.words else ""
        if not isinstance(item, SimpleCommand) or program not in _PRINTING:
            continue
        commands = [
            command
            for word in iter_words((item,))
            for nested in word.nested
            for command in list_commands(nested)
        ]
        nested_readings = [_read_command(command, confined, pinned_rev) for command in commands]
        readings += [reading for reading in nested_readings if reading is not None]
    return readings
