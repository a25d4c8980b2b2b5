"""The context of a review of commits in this repository, without GitHub.

The same range gives the same bytes in every clone: git runs inside its own directory, where neither the
worktree's attributes nor the location of the checkout matter, ids are full, and configuration that could
change the output is overridden. See ``docs/reference/task-types.md``.
"""

from __future__ import annotations

from pathlib import Path

from cockpit.access.git_folders import describe_missing_checkout
from cockpit.access.run_program import Finished, ProgramMissing, run_git
from cockpit.core.fenced_text import make_visible
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.loop.intake.review_template import ChangedFile, OpeningFailed, ReviewContext

COMMITS_MAX = 100
"""Commits whose titles are listed."""

_HERE = ("--git-dir=.",)
"""From within a repository git has to be told that this is one."""
_DIFF = (
    "diff",
    "--full-index",
    "--find-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--diff-algorithm=myers",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O/dev/null",
)


_BRANCHES = (
    "for-each-ref",
    "--count=4",
    "--sort=-committerdate",
    "--format=%(refname:short)",
    "refs/heads",
)
"""The branches of the user's own that changed last."""


async def commit_range(spelled: str, base: str, tip: str, root: Path) -> ReviewContext:
    """The change from commit ``base`` to commit ``tip`` (full ids) as a review starts from it.

    Raises :class:`OpeningFailed` when git cannot say, or nothing changed.
    """
    where = await _git_dir(root)
    files = _changed(
        await _ask(where, spelled, *_DIFF, "--raw", "--numstat", "-z", base, tip, "--")
    )
    if not files:
        raise OpeningFailed(
            f"{spelled} changes no files, so there is nothing to review."
            + _suggest_branches(await _git(where, *_HERE, *_BRANCHES, f"--no-merged={tip}"))
        )
    diff = await _ask(where, spelled, *_DIFF, "--unified=3", base, tip, "--", whole=False)
    log = await _ask(
        where,
        spelled,
        "-c",
        "i18n.logOutputEncoding=UTF-8",
        "log",
        "-z",
        f"--max-count={COMMITS_MAX}",
        "--format=%an%x00%s%x00%b",
        f"{base}..{tip}",
        "--",
    )
    undone, total = await _count(where, base, tip)
    title, body, author = _describe_range(spelled, _commits(log), total)
    if ".." in spelled and "..." not in spelled and undone:
        body += (
            f"\n\nNote: the base has {pluralize(undone, 'commit')} that the tip "
            f"lacks, and this diff shows them undone. Three dots in the range leave them out."
        )
    return ReviewContext(
        title=title, author=author, state="local range", body=body, diff=diff, files=files, rev=tip
    )


async def _git_dir(root: Path) -> Path:
    finished = await _git(root, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if not finished.ok:
        raise OpeningFailed(
            describe_missing_checkout(
                root, "a review needs a range of commits", "Run this in a clone."
            )
        )
    return Path(finished.text.removesuffix("\n"))


async def _ask(where: Path, spelled: str, *args: str, whole: bool = True) -> str:
    done = await _git(where, *_HERE, "--no-replace-objects", *args)
    if done.timed_out:
        raise OpeningFailed(f"git took too long over {spelled}; name a smaller range.")
    if done.truncated:
        if whole:
            raise OpeningFailed(f"{spelled} changes too much to list; name a smaller range.")
        # Far over the 50 KiB that are shown, so the rest is not needed.
        return done.text
    if done.code != 0:
        raise OpeningFailed(
            f"git cannot show the changes of {spelled}: {mask(make_visible(done.reason))}"
        )
    return done.text


def _suggest_branches(listed: Finished) -> str:
    """Return a sentence that names branches with commits of their own; '' without any."""
    names = [make_visible(name) for name in listed.text.split()] if listed.ok else []
    if not names:
        return ""
    return f" Branches with other commits: {', '.join(names)}. Review one by its name, such as {names[0]}."


async def _git(where: Path, *args: str) -> Finished:
    try:
        return await run_git(*args, cwd=where)
    except ProgramMissing as error:
        raise OpeningFailed(
            "git is not installed, and a range cannot be reviewed without it. Install git."
        ) from error


async def _count(where: Path, base: str, tip: str) -> tuple[int, int]:
    """How many commits ``base`` has and ``tip`` lacks, and the reverse."""
    done = await _git(
        where,
        *_HERE,
        "--no-replace-objects",
        "rev-list",
        "--count",
        "--left-right",
        f"{base}...{tip}",
        "--",
    )
    if not done.ok:
        return 0, 0
    undone, total = done.text.split()
    return int(undone), int(total)


def _changed(listing: str) -> tuple[ChangedFile, ...]:
    """Read ``--raw --numstat -z``: the raw lines, as :func:`_take_notes` reads them, then the counts.

    A count is ``IN TAB OUT TAB PATH NUL``, or for renames ``IN TAB OUT TAB NUL A NUL B NUL``.
    """
    notes, rest = _take_notes(listing.split("\0"))
    fields = iter(rest)
    files: list[ChangedFile] = []
    for field in fields:
        lines_in, tab, other = field.partition("\t")
        if not tab:
            continue
        lines_out, _, path = other.partition("\t")
        was = ""
        if not path:
            was, path = next(fields), next(fields)
        binary = ["binary"] if lines_in == "-" else []
        files.append(
            ChangedFile(
                path=path,
                insertions=0 if binary else int(lines_in),
                deletions=0 if binary else int(lines_out),
                was=was,
                note="; ".join(binary + notes.get(path, [])),
            )
        )
    return tuple(files)


def _take_notes(fields: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Read ``:OLDMODE NEWMODE OLD NEW STATUS NUL PATH NUL`` (two paths for renames); return the rest too."""
    notes: dict[str, list[str]] = {}
    at = 0
    while at < len(fields) and fields[at].startswith(":"):
        old, new, _, _, status = fields[at][1:].split(" ")
        at += 3 if status[0] in "RC" else 2
        path = fields[at - 1]
        note = {"A": ["added"], "D": ["removed"]}.get(status[0], [])
        if status[0] not in "AD" and old != new:
            note = [f"mode {old} → {new}"]
        if "160000" in (old, new):
            note = [*note, "submodule"]
        elif "120000" in (old, new):
            note = [*note, "symlink"]
        notes[path] = note
    return notes, fields[at:]


def _commits(log: str) -> list[tuple[str, str, str]]:
    """(author, title, body) of each commit, oldest first."""
    parts = log.removesuffix("\0").split("\0")
    whole = len(parts) - len(parts) % 3
    commits = [(parts[at], parts[at + 1], parts[at + 2]) for at in range(0, whole, 3)]
    return commits[::-1]


def _describe_range(
    spelled: str, commits: list[tuple[str, str, str]], total: int
) -> tuple[str, str, str]:
    """Title, body and author of a range, as a pull request would have them."""
    authors = ", ".join(dict.fromkeys(author for author, _, _ in commits))
    if len(commits) == 1:
        _, title, body = commits[0]
        return title, body.strip(), authors
    lines = [f"- {title}" for _, title, _ in commits]
    if total > len(commits):
        lines.insert(0, f"- … {pluralize(total - len(commits), 'earlier commit')}")
    listed = "\n".join(lines) or "(no commits: the tip lies behind the base)"
    return f"{spelled} ({pluralize(total, 'commit')})", listed, authors
