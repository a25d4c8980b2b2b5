"""A view of a repository for one run in the sandbox: a git directory of its own, taken over afterwards.

The command gets a copy of index, branches and settings, new objects go into the view, and the
repository's own objects are read-only below it. The repository itself is never writable in the sandbox,
so the user's own git meets nothing of the command's while it runs. Afterwards git looks at the view
inside the sandbox, and says what moved; every object is checked as it is taken over, and of the rest only
entries of the index, branches and tags come out: no settings, hooks, links or redirects.
See ``docs/reference/security.md``.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import list_alternates
from cockpit.access.run_program import run_git
from cockpit.act.sandbox.bubblewrap import Extra, Sandbox
from cockpit.act.sandbox.git_places import GitPlaces, clean_settings, find_git_places
from cockpit.act.sandbox.run_confined import ConfinedRun, run_confined
from cockpit.core.errors import CockpitError

OBJECTS = Path("/run/cockpit/objects")
"""Where the repository's own objects are seen in the sandbox."""

_MOST_BYTES = 512 * 1024**2
_LONGEST_STATE = 1_000_000
_MOST_ALTERNATES = 8
_TIMEOUT_S = 120.0
_STATES = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG")
_SETTINGS = re.compile(
    r"(user|i18n|filter|diff|merge|branch|apply|status|column|color|submodule|lfs|push|pull|rebase|fetch"
    r"|author|committer|feature|index)\..+"
    r"|core\.(autocrlf|eol|safecrlf|filemode|ignorecase|symlinks|precomposeunicode|sparsecheckout"
    r"|sparsecheckoutcone|quotepath|hookspath|abbrev|commentchar|whitespace|checkstat|trustctime"
    r"|bigfilethreshold|protecthfs|protectntfs)"
    r"|extensions\.objectformat|init\.defaultbranch|commit\.(cleanup|verbose|status)"
    r"|remote\..+\.(url|pushurl|fetch)",
    re.DOTALL,
)
_OWN = ("local", "worktree")
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOVABLE = re.compile(r"refs/(heads|tags)/[^\x00-\x20\x7f~^:?*\[\\]+")
_MODES = ("100644", "100755", "120000")
_STATE_SCRIPT = r"""
git symbolic-ref -q HEAD || git rev-parse -q --verify HEAD || :
printf '\0'; git for-each-ref --format='%(objectname) %(refname)'
printf '\0'; git ls-files --stage -z
cd "$1/objects" || exit
{ find ?? -type f 2>/dev/null | tr -d /
  for index in pack/*.idx; do [ -f "$index" ] && git show-index <"$index" | cut -d' ' -f2; done
} | git pack-objects -q --stdout >../taken-over.pack
"""
"""What the view holds: HEAD, refs, index, and as a file a pack of its new objects."""


_CHANGES = re.compile(
    r"\bgit\b[^;&|\n]*\s(add|am|apply|branch|checkout|cherry-pick|commit|merge|mv|notes|reset|restore|revert"
    r"|rm|stash|switch|tag|update-index)\b"
)
_CHANGES_MORE = re.compile(
    r"\bgit\b[^;&|\n]*\s(bisect|clone|config|fetch|filter-branch|gc|init|pull|push|rebase|remote|replace"
    r"|repack|submodule|worktree|stash (apply|branch|clear|drop|pop))\b"
)
"""What leaves a state or settings behind that no view gives back."""


def changes_repository(argv: Sequence[str]) -> bool:
    """Whether a command asks git, in its words, for what a view of the repository can give."""
    text = " ".join(argv)
    return _CHANGES.search(text) is not None and _CHANGES_MORE.search(text) is None


class ViewRefused(CockpitError):
    """What a command did to its view of the repository cannot be taken over; the message says why."""

    code = "git_view"


class GitView(Struct, frozen=True):
    """An open view."""

    root: Path
    places: GitPlaces
    folder: Path
    """The view's git directory, outside."""
    inside: Path
    """Where it is seen in the sandbox: where the repository is."""
    reads: tuple[tuple[Path, Path], ...]
    head: str
    refs: Mapping[str, str]
    index: Path
    """A copy of the index as it was."""
    states: tuple[str, ...]
    """The files of a merge, pick or revert that was under way."""

    def extra(self) -> Extra:
        """Return what a run with this view sees."""
        return Extra(git=(self.folder, self.inside), read=self.reads)

    def may_move(self, ref: str) -> bool:
        """Whether a command may move ``ref``: in a linked checkout its own branch, and ones that it makes.

        A task's tree is one. The branches of the user's checkout are not its business.
        """
        linked = self.places.private != self.places.common
        return not linked or self.head == f"ref: {ref}" or ref not in self.refs


class TakenOver(Struct, frozen=True):
    """What came out of a view. ``left`` says in words what did not."""

    moved: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@asynccontextmanager
async def open_view(root: Path, places: GitPlaces) -> AsyncIterator[GitView]:
    """Open a view of the repository of ``root``; it is removed in the end. Raises ``ViewRefused``."""
    listed = await run_git(
        "for-each-ref", "--format=%(objectname) %(refname)", cwd=root, max_bytes=_MOST_BYTES
    )
    settings = await run_git("config", "--null", "--list", "--show-scope", cwd=root, hooks=True)
    if not listed.ok or not settings.ok:
        raise ViewRefused(
            f"git cannot read this repository: {listed.error_text or settings.error_text}"
        )
    base = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="cockpit-view-"))
    try:
        refs = dict(line.split(" ", 1)[::-1] for line in listed.text.splitlines())
        yield await asyncio.to_thread(_build, base, root, places, refs, settings.text)
    finally:
        await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)


def _build(
    base: Path, root: Path, places: GitPlaces, refs: Mapping[str, str], settings: str
) -> GitView:
    folder = base / "git"
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        (folder / name).mkdir(parents=True)
    fields = settings.split("\0")
    scoped = list(
        zip(fields[::2], (entry.partition("\n")[::2] for entry in fields[1::2]), strict=False)
    )
    values = [value for _, value in scoped]
    (folder / "config").write_text(_config_text(values), "utf-8", "surrogateescape")
    head = (places.private / "HEAD").read_text("utf-8", "surrogateescape")
    (folder / "HEAD").write_text(head, "utf-8", "surrogateescape")
    packed = "".join(f"{name} {ref}\n" for ref, name in sorted(refs.items()))
    (folder / "packed-refs").write_text(packed, "utf-8", "surrogateescape")
    for name in ("info/attributes", "shallow"):
        _copy(places.common / name, folder / name)
    for name in ("info/sparse-checkout", "index", *_STATES):
        _copy(places.private / name, folder / name)
    for shared in places.private.glob("sharedindex.*"):
        _copy(shared, folder / shared.name)
    _copy(folder / "index", base / "index")
    for shared in folder.glob("sharedindex.*"):
        _copy(shared, base / shared.name)
    own = dict(values)
    _write_excludes(folder / "info" / "exclude", places, own.get("core.excludesfile", ""))
    reads = []
    for number, objects in enumerate(list_object_folders(places.common)):
        reads.append((objects, OBJECTS / str(number)))
    lines = "".join(f"{inside}\n" for _, inside in reads)
    (folder / "objects" / "info" / "alternates").write_text(lines)
    states = tuple(name for name in _STATES if (folder / name).exists())
    inside = places.private
    for name in ("hooks", "modules"):
        there = places.common / name
        if there.is_dir() and not there.is_symlink():
            (folder / name).mkdir(exist_ok=True)
            reads.append((there, inside / name))
    return GitView(
        root, places, folder, inside, tuple(reads), head.strip(), refs, base / "index", states
    )


def _config_text(values: list[tuple[str, str]]) -> str:
    """Return a file of settings with those of ``values`` that change what git writes or shows."""
    sha256 = ("extensions.objectformat", "sha256") in values
    lines = [
        f"[core]\n\trepositoryformatversion = {int(sha256)}\n\tbare = false\n\tlogallrefupdates = true\n"
        "[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = 0\n"
    ]
    for name, value in values:
        if _SETTINGS.fullmatch(name) is None:
            continue
        section, _, rest = name.partition(".")
        sub, _, key = rest.rpartition(".")
        heading = f'[{section} "{_escape(sub)}"]' if sub else f"[{section}]"
        lines.append(f'{heading}\n\t{key} = "{_escape(value)}"\n')
    return clean_settings("".join(lines))


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _write_excludes(target: Path, places: GitPlaces, named: str) -> None:
    """Write what git leaves out here: the repository's list, and the user's, whose home is not seen."""
    own = Path(named).expanduser() if named else Path("~/.config/git/ignore").expanduser()
    texts = []
    for source in (own, places.common / "info" / "exclude"):
        if source.is_file() and source.stat().st_size < _MOST_BYTES // 512:
            texts.append(source.read_text("utf-8", "surrogateescape"))
    target.write_text("\n".join(texts), "utf-8", "surrogateescape")


def _copy(source: Path, target: Path) -> None:
    if source.is_file() and not source.is_symlink():
        shutil.copyfile(source, target)


def list_object_folders(common: Path) -> list[Path]:
    """List the folders of objects that the repository reads, its own first."""
    others = [Path(each) for each in list_alternates(str(common))[: _MOST_ALTERNATES - 1]]
    folders = [common / "objects", *(each for each in others if each.name == "objects")]
    return [folder for folder in folders if folder.is_dir()]


async def run_in_view(
    sandbox: Sandbox,
    argv: Sequence[str],
    root: Path,
    environment: Mapping[str, str],
    *,
    timeout_s: float,
    max_bytes: int,
    may_move: Callable[[str], bool] | None = None,
    on_output: Callable[[bytes], object] | None = None,
) -> tuple[ConfinedRun, TakenOver]:
    """Run ``argv`` with a view of the repository of ``root``, and take over what it did there.

    Nothing is taken over from one that was ended. Raises ``ViewRefused``, and what ``run_confined`` raises.
    """
    places = await asyncio.to_thread(find_git_places, root)
    async with open_view(root, places) if places else nullcontext() as view:
        ended = await run_confined(
            sandbox,
            argv,
            root,
            environment,
            timeout_s=timeout_s,
            max_bytes=max_bytes,
            extra=view.extra() if view else None,
            on_output=on_output,
        )
        was_ended = ended.passed or ended.finished.timed_out or ended.finished.truncated
        if view is None or was_ended:
            return ended, TakenOver()
        return ended, await take_over(view, sandbox, environment, may_move or view.may_move)


async def take_over(
    view: GitView,
    sandbox: Sandbox,
    environment: Mapping[str, str],
    may_move: Callable[[str], bool],
) -> TakenOver:
    """Bring into the repository what a run did to its view. ``may_move`` says which refs may.

    Raises ``ViewRefused``; then the repository is as it was, but for objects that nothing names.
    """
    words = ("/bin/sh", "-c", _STATE_SCRIPT, "sh", str(view.inside))
    extra = Extra(git=(view.folder, view.inside), read=view.reads, root="read")
    looked = await run_confined(
        sandbox,
        words,
        view.root,
        environment,
        timeout_s=_TIMEOUT_S,
        max_bytes=_MOST_BYTES,
        extra=extra,
    )
    fields = looked.finished.stdout.decode("utf-8", "surrogateescape").split("\0", 2)
    if not looked.finished.ok or len(fields) != 3:
        why = (
            looked.passed or (looked.finished.error_text.splitlines() or ["it did not answer"])[-1]
        )
        raise ViewRefused(f"What it left in its view of the repository cannot be read: {why[:200]}")
    head, refs = fields[0].strip(), _parse_refs(fields[1])
    await _take_objects(view)
    moves, left = _moves(view, refs, may_move)
    left += await _take_index(view, fields[2])
    if moves:
        lines = "".join(f"{move}\n" for move in moves).encode("utf-8", "surrogateescape")
        await _git(view, "update-ref", "-m", "cockpit: from the sandbox", "--stdin", stdin=lines)
    left += await _take_head(view, head, refs, {move.split(" ")[1] for move in moves})
    left += await _take_stash(view, refs.get("refs/stash"))
    await asyncio.to_thread(_take_states, view)
    return TakenOver(tuple(move.split(" ")[1] for move in moves), tuple(left))


def _parse_refs(text: str) -> dict[str, str]:
    refs = {}
    for line in text.splitlines():
        name, _, ref = line.partition(" ")
        if _OBJECT.fullmatch(name):
            refs[ref] = name
    return refs


def _moves(
    view: GitView, refs: Mapping[str, str], may_move: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    moves, left = [], []
    for ref in sorted({*refs, *view.refs}):
        before, after = view.refs.get(ref), refs.get(ref)
        if before == after or ref == "refs/stash":
            continue
        if _MOVABLE.fullmatch(ref) is None or not may_move(ref):
            left.append(f"{ref} was moved in the sandbox only")
        elif after is None:
            moves.append(f"delete {ref} {before}")
        elif before is None:
            moves.append(f"create {ref} {after}")
        else:
            moves.append(f"update {ref} {after} {before}")
    return moves, left


async def _take_objects(view: GitView) -> None:
    pack = await asyncio.to_thread(_read_pack, view.folder / "taken-over.pack")
    if pack is not None:
        await _git(view, "unpack-objects", "-q", "--strict", stdin=pack)


def _read_pack(path: Path) -> bytes | None:
    """Return the pack, None for one without objects. The command could have put anything there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ViewRefused(f"Its new objects cannot be read: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ViewRefused("Its new objects are more than 512 MiB; commit them yourself.")
    return data if data[:4] == b"PACK" and data[8:12] != b"\0\0\0\0" else None


async def _take_index(view: GitView, after: str) -> list[str]:
    listed = await _git(view, "ls-files", "--stage", "-z", env={"GIT_INDEX_FILE": str(view.index)})
    before = _parse_index(listed)
    entries = _parse_index(after)
    lines, left = [], []
    for path in sorted({*before, *entries}):
        new = entries.get(path, ())
        if new == before.get(path, ()):
            continue
        if any(not entry.startswith(_MODES) for entry in new):
            left.append(f"{path} was added as a repository of its own, and stays out of the index")
            continue
        lines.append(f"0 {'0' * 40}\t{path}")
        lines += [f"{entry}\t{path}" for entry in new]
    if lines:
        body = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
        await _git(view, "update-index", "-z", "--index-info", stdin=body)
        # A file that differs from the index is not a failure of this.
        await run_git("update-index", "-q", "--refresh", cwd=view.root, timeout_s=_TIMEOUT_S)
    return left


def _parse_index(text: str) -> dict[str, tuple[str, ...]]:
    entries: dict[str, tuple[str, ...]] = {}
    for line in text.split("\0"):
        fields, _, path = line.partition("\t")
        if path:
            entries[path] = (*entries.get(path, ()), fields)
    return entries


async def _take_head(
    view: GitView, head: str, refs: Mapping[str, str], moved: set[str]
) -> list[str]:
    now = f"ref: {head}" if head.startswith("refs/") else head
    if now == view.head or not head:
        return []
    if _OBJECT.fullmatch(head):
        await _git(view, "update-ref", "--no-deref", "HEAD", head)
        return []
    arrived = head in moved or view.refs.get(head) == refs.get(head)
    if _MOVABLE.fullmatch(head) is None or not head.startswith("refs/heads/") or not arrived:
        return [f"HEAD stays: {head[:100]!r} is not a branch that may be checked out"]
    await _git(view, "symbolic-ref", "-m", "cockpit: from the sandbox", "HEAD", head)
    return []


async def _take_stash(view: GitView, after: str | None) -> list[str]:
    """Keep what the command stashed; the user's own stash is not touched."""
    before = view.refs.get("refs/stash")
    if after == before:
        return []
    if after is None:
        return ["the stash was emptied in the sandbox only"]
    await _git(view, "stash", "store", "-m", "cockpit: from the sandbox", after)
    return []


def _take_states(view: GitView) -> None:
    """Begin and end a merge, pick or revert as the command did in its view."""
    for name in _STATES:
        source, target = view.folder / name, view.places.private / name
        if not os.path.lexists(source):
            if name in view.states:
                target.unlink(missing_ok=True)
            continue
        text = _read_state(source)
        if text is None or (target.exists() and name not in view.states):
            continue  # no file, or the user's own since
        if name.endswith("_HEAD") and not all(_OBJECT.fullmatch(line) for line in text.split()):
            continue
        target.write_text(text, "utf-8", "surrogateescape")


def _read_state(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_LONGEST_STATE).decode("utf-8", "surrogateescape")


async def _git(
    view: GitView, *args: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> str:
    ended = await run_git(
        *args, cwd=view.root, timeout_s=_TIMEOUT_S, max_bytes=_MOST_BYTES, stdin=stdin, env=env
    )
    if not ended.ok:
        lines = ended.error_text.splitlines() or [f"exit {ended.code}"]
        raise ViewRefused(f"git {args[0]} refused what came out of the sandbox: {lines[-1][:200]}")
    return ended.stdout.decode("utf-8", "surrogateescape")
