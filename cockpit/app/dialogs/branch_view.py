"""The branch of a chain, a task or a session: its files, its commits, its conflicts; merge and drop.

Specified in ``docs/reference/screen.md``, branches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content

from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError
from cockpit.core.text import pluralize
from widgets.proposals.diff_list import DiffList, Part
from widgets.text.clean import clean
from widgets.text.detail import DetailRow, entries, fields, sentence
from widgets.text.style_names import ACCENT, BAD, DIM, GOOD, STRONG, WARN, line
from widgets.views import FileDiffView

if TYPE_CHECKING:
    from cockpit.tasks.agent_changes.branch_change import BranchChange

_MOST_COMMITS = 30


class BranchView(Dialog[None]):
    """What a branch would bring; ``m`` and ``x`` make a proposal, which waits for the user's keys."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("q", "leave", "close", show=False),
        Binding("m", "propose(False)", "merge", show=False),
        Binding("x", "propose(True)", "drop", show=False),
        Binding("s", "solve", "solve conflicts", show=False),
        Binding("a", "abort", "take the merge back", show=False),
        Binding("p", "copy_path", "copy the path", show=False),
        Binding("y", "copy_branch", "copy the branch", show=False),
        Binding("r", "read", "read again", show=False),
        Binding("o,ctrl+g", "edit", "open in the editor", show=False),
    ]

    def __init__(self, host: Host, name: str) -> None:
        super().__init__()
        self._host, self._about = host, name
        self._shown: BranchChange | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="branch", classes="box") as box:
            box.border_title = Content(clean(f"branch of {self._about}", newlines=False))
            box.border_subtitle = Content(
                "[ ] files · ␣ fold · z all · m merge · x drop · o editor · esc back"
            )
            yield DiffList(((sentence(("reading…", DIM)),),))

    async def on_mount(self) -> None:
        self.query_one(DiffList).focus()
        await self.action_read()

    async def action_read(self) -> None:
        """Read the branch, again where it is shown already."""
        from cockpit.tasks.agent_changes.branch_change import read_branch

        engine = self._host.engine
        try:
            shown = await read_branch(engine.store, engine.place, self._about)
        except (CockpitError, OSError) as error:
            if self.is_attached:
                self.query_one(DiffList).show(((sentence((str(error), WARN)),),))
            return
        if self.is_attached:
            self._shown = shown
            self.query_one(DiffList).show(tuple(describe_branch(shown)))

    async def action_propose(self, drop: bool) -> None:
        """Make a proposal to merge or to drop the branch, and go to it."""
        host = self._host
        try:
            session_id = await host.engine.propose_branch(self._about, drop=drop)
        except CockpitError as error:
            host.show_error(str(error))
            return
        if self.is_current:
            self.dismiss(None)
        host.attach(session_id)
        host.main.panes.turn_to("proposals")
        host.main.prompt.focus()  # Enter and Escape decide there
        host.main.schedule_paint()

    async def action_solve(self) -> None:
        """Begin to solve conflicts in the branch's worktree; again: commit the solution."""
        from cockpit.tasks.agent_changes.branch_change import begin_solving, finish_solving

        if self._shown is None or not (self._shown.solving or self._has_conflicts):
            self._host.show_notice("No files conflict.")
            return
        engine = self._host.engine
        try:
            if self._shown.solving:
                await finish_solving(engine.store, engine.place, self._about)
                self._host.show_notice("The conflicts are solved: m proposes the merge.")
            else:
                await begin_solving(engine.store, engine.place, self._about)
        except CockpitError as error:
            self._host.show_error(str(error))
        await self.action_read()

    async def action_abort(self) -> None:
        """Take the merge back that was begun in the branch's worktree."""
        from cockpit.tasks.agent_changes.branch_change import abort_solving

        if self._shown is None or not self._shown.solving:
            return
        engine = self._host.engine
        try:
            await abort_solving(engine.store, engine.place, self._about)
        except CockpitError as error:
            self._host.show_error(str(error))
        await self.action_read()

    @property
    def _has_conflicts(self) -> bool:
        change = self._shown.change if self._shown is not None else None
        return change is not None and bool(change.conflicts)

    def action_copy_path(self) -> None:
        """Copy the path of the file under the cursor."""
        path, _ = self.query_one(DiffList).place
        if path:
            self.app.copy_to_clipboard(clean(path))
            self._host.show_notice("path copied")

    def action_copy_branch(self) -> None:
        """Copy what is selected, else the name of the branch."""
        tree = self._shown.branch.tree if self._shown is not None else None
        text = self.get_selected_text() or (tree.branch if tree is not None else "")
        if text:
            self.app.copy_to_clipboard(clean(text))
            self._host.show_notice("copied")

    async def action_edit(self) -> None:
        """Open the file under the cursor in the user's editor, in the branch's worktree."""
        path, number = self.query_one(DiffList).place
        if self._shown is None or not path:
            return
        tree = self._shown.branch.tree
        root = self._host.engine.place.root if tree is None else Path(tree.path)
        if not await asyncio.to_thread(root.is_dir):
            self._host.show_error("Its worktree is gone; the files are in the branch only.")
            return
        if await self._host.open_in_editor(root, path, number):
            await self.action_read()


def describe_branch(shown: BranchChange) -> Iterator[Part]:
    """Yield the head, the commits, the conflicts with both sides, and the files."""
    branch, change = shown.branch, shown.change
    into = branch.into.removeprefix("refs/heads/")
    tree = branch.tree
    size = "nothing differs" if change is None else change.size
    left = len(change.uncommitted) if change is not None else 0
    head: list[DetailRow] = [
        sentence((tree.branch if tree else "your checkout", STRONG), (f"  {size}", ACCENT)),
        *fields(
            (
                ("into", into if tree else ""),
                ("state", _state(shown)),
                ("commits", f"{len(shown.commits):,}" if shown.commits else ""),
                ("uncommitted", pluralize(left, "file") if left else ""),
                ("worktree", tree.path if tree else ""),
            )
        ),
    ]
    for note in change.notes if change is not None else ():
        head.append(sentence(("! ", WARN), note))
    yield tuple(head)
    if change is None:
        return
    if change.conflicts:
        yield _describe_conflicts(shown, into)
        for side in shown.sides:
            sides = f"{side.path}: {into} ↔ {tree.branch if tree else ''}"
            yield (sentence((sides, STRONG)),)
            yield FileDiffView(side.path, side.before, side.after)
    if shown.commits:
        listed = [
            (commit.sha, f"{commit.subject} · {commit.author} · {commit.at[:10]}")
            for commit in shown.commits[:_MOST_COMMITS]
        ]
        rest = len(shown.commits) - len(listed)
        yield tuple(
            entries("commits", [*listed, *([("…", f"{rest} more")] if rest > 0 else [])])[1:]
        )
    for diff in change.diffs:
        yield FileDiffView(diff.path, diff.before, diff.after)


def _state(shown: BranchChange) -> str:
    branch, change = shown.branch, shown.change
    if branch.tree is None:
        return "not committed; it is in your checkout already"
    if branch.runs:
        return "in progress: it can be merged when it has stopped"
    if change is None:
        return "everything of it is merged"
    if branch.tree.task_id and branch.tree.status == "merged":
        return "merged into its chain"
    if shown.solving:
        return "a merge that solves the conflicts has begun: s commits it, a takes it back"
    return "conflicts: s begins to solve them" if change.conflicts else "can be merged: press m"


def _describe_conflicts(shown: BranchChange, into: str) -> tuple[DetailRow, ...]:
    change = shown.change
    assert change is not None  # noqa: S101 -- looked at by the caller
    names = [sentence(("  ✗ ", BAD), path) for path in change.conflicts]
    head = sentence((f"{pluralize(len(change.conflicts), 'file')} in conflict with {into}", BAD))
    if shown.solving:
        steps = (
            ("o", "opens the file under the cursor, with git's markers in it"),
            ("s", f"commits the merge of {into} into this branch, when no marker is left"),
            ("a", "takes the merge back: the worktree is as it was before"),
        )
    else:
        steps = (
            (
                "s",
                f"begins to merge {into} into this branch, in its worktree; your checkout stays as it is",
            ),
            ("m", "proposes the merge; while files conflict it is refused and nothing changes"),
            ("x", "drops the branch; its work is kept as a reference"),
        )
    return (
        head,
        *names,
        sentence(),
        sentence(("What to do", STRONG)),
        *(DetailRow(line(text), line((f"  {key}  ", GOOD)), line("     ")) for key, text in steps),
        sentence(("Both sides follow, then all files.", DIM)),
    )
