"""Git commands that print files, changes and commits: the scope items that read the same.

See ``docs/reference/actions.md``, reading commands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cockpit.act.reading.scope import Folder, Reading, file_item
from cockpit.act.reading.search_programs import translate_search

_SUMMARY = frozenset(
    {"--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "--summary", "--dirstat"}
)
_VALUED = frozenset(
    {
        "-n",
        "-S",
        "-G",
        "-L",
        "-U",
        "--author",
        "--since",
        "--until",
        "--grep",
        "--format",
        "--max-count",
    }
)
_PATCH = frozenset({"-p", "-u", "--patch", "--patch-with-stat"})
_NO_SOURCE = {
    "blame": "Who changed each line cannot be read. Ask for {file}, or for log:HEAD.",
    "annotate": "Who changed each line cannot be read. Ask for {file}, or for log:HEAD.",
    "diff-tree": "Ask for diff:RANGE.",
    "diff-index": "Ask for diff:RANGE.",
    "diff-files": "Ask for diff:HEAD.",
    "range-diff": "Ask for diff:RANGE of each of the two.",
    "whatchanged": "Ask for log:RANGE and diff:RANGE.",
    "format-patch": "Ask for log:RANGE and diff:RANGE.",
    "archive": "Ask for the files themselves.",
}


def translate_git(rest: Sequence[str], folder: Folder) -> Reading | None:
    """Return what ``git`` with these arguments reads; None when it prints no content."""
    words = list(rest)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-C", "-c", "--git-dir", "--work-tree") and words:
            words.pop(0)
    if not words:
        return None
    verb, arguments = words[0], words[1:]
    match verb:
        case "diff":
            return _diff(arguments, folder)
        case "show":
            return _show(arguments, folder)
        case "log":
            return _log(arguments, folder)
        case "grep":
            revisions = [
                word for word in arguments if re.fullmatch(r"HEAD\S*|[0-9a-f]{7,40}", word)
            ]
            plain = [word for word in arguments if word not in revisions and word != "--"]
            return translate_search("grep", ["-r", *plain], folder)
        case "cat-file":
            is_content = any(word in ("-p", "blob", "--textconv") for word in arguments)
            return _show(arguments[-1:], folder) if is_content else None
        case "stash" if arguments[:1] == ["show"]:
            return Reading(
                refusal="The gateway does not read stashes. Apply it, then ask for diff:HEAD."
            )
    if verb in _NO_SOURCE:
        _, paths = _split(arguments, folder)
        file = file_item(folder.path(paths[0])) if paths else "file:PATH"
        return Reading(refusal=_NO_SOURCE[verb].format(file=file))
    return None


def _diff(arguments: Sequence[str], folder: Folder) -> Reading:
    if "--no-index" in arguments:
        return Reading(refusal="Ask for the two files themselves.")
    revisions, paths = _split(arguments, folder)
    if len(revisions) > 2:
        return Reading(refusal="Ask for diff:A..B of two revisions.")
    span = "..".join(revisions) if revisions else "HEAD"
    return Reading(_in_paths(f"diff:{span}", paths, folder, _level(arguments)))


def _show(arguments: Sequence[str], folder: Folder) -> Reading:
    revisions, paths = _split(arguments, folder)
    items: list[str] = []
    for revision in revisions or ["HEAD"]:
        commit, colon, path = revision.partition(":")
        if colon:
            where = file_item(folder.path(path)) if path else "tree:."
            return Reading(
                refusal="The gateway reads the project as it is now, not files of another revision. Ask"
                f" for {where}, or for diff:{commit or 'HEAD'} in {path or '**'}, which shows what"
                " changed since."
            )
        items += [f"log:{commit}~1..{commit}"]
        items += _in_paths(f"diff:{commit}~1..{commit}", paths, folder, _level(arguments))
    return Reading(tuple(items))


def _log(arguments: Sequence[str], folder: Folder) -> Reading:
    revisions, paths = _split(arguments, folder)
    if len(revisions) > 1:
        return Reading(refusal="Ask for log:A..B of one range.")
    span = revisions[0] if revisions else "HEAD"
    if not _PATCH & set(arguments):
        return Reading((f"log:{span}{' @outline' if '--oneline' in arguments else ''}",))
    if ".." not in span:
        return Reading(
            refusal="Ask for log:RANGE, and for diff:RANGE of the commits that you need."
        )
    return Reading((f"log:{span}", *_in_paths(f"diff:{span}", paths, folder, "")))


def _split(arguments: Sequence[str], folder: Folder) -> tuple[list[str], list[str]]:
    """Return the revisions and the paths among the arguments of a git command."""
    revisions: list[str] = []
    paths: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            paths += list(words)
        elif word in _VALUED:
            next(words, None)
        elif word.startswith("-"):
            continue
        elif ":" not in word and (folder.is_file(word) or folder.is_folder(word)):
            paths.append(word)
        else:
            revisions.append(word)
    return revisions, paths


def _level(arguments: Sequence[str]) -> str:
    return " @outline" if any(word.split("=")[0] in _SUMMARY for word in arguments) else ""


def _in_paths(item: str, paths: Sequence[str], folder: Folder, level: str) -> tuple[str, ...]:
    """Return ``item`` limited to each of ``paths``."""
    if not paths or "." in paths:
        return (f"{item}{level}",)
    globs = [
        f"{folder.path(path)}/**" if folder.is_folder(path) else folder.path(path) for path in paths
    ]
    return tuple(f"{item} in {_spelled(glob)}{level}" for glob in globs)


def _spelled(glob: str) -> str:
    plain = " " not in glob and re.search(r"[*?\[/.]", glob)
    return glob if plain else '"' + glob.replace("\\", "\\\\").replace('"', '\\"') + '"'
