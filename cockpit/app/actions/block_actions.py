"""Actions on the blocks of the conversation: open, search, jump, copy.

Specified in ``docs/reference/screen.md``, blocks.
"""

from __future__ import annotations

from functools import partial

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.dialogs.small_dialogs import Ask
from cockpit.app.host import Host
from widgets.text.clean import clean


def focus_conversation(host: Host) -> None:
    """Move the focus to the blocks of the conversation; again: back to the prompt."""
    main = host.main
    if main.pane == "conversation":
        main.prompt.focus()
        return
    main.panes.turn_to("conversation")
    conversation = main.panes.conversation
    conversation.focus()
    conversation.action_move(0)
    main.schedule_paint()


def open_block(host: Host) -> None:
    """Show everything that is recorded of the marked block, or of the newest."""
    from cockpit.app.dialogs.block_view import BlockView

    turn = host.main.panes.conversation.current
    if turn is None:
        host.main.flash("the conversation is empty")
        return
    text = turn.text or next((line.text for line in turn.lines), "")
    title = clean(text, newlines=False)[:60]
    host.open_screen(BlockView(host, host.session_id, turn.key, title))


def search_blocks(host: Host) -> None:
    """Ask for words, then mark the newest block that has them; n and N go to the others."""
    before = host.main.found_words

    def search(words: str | None) -> None:
        if words is not None:
            host.main.found_words = words
            find_block(host, -1)

    question = "Every word must be in the block. Then n goes to older blocks, N to newer ones."
    host.open_screen(Ask("Search the conversation", question, value=before), search)


def find_block(host: Host, step: int) -> None:
    """Mark the next block with the words that were searched for: an older one for a negative ``step``."""
    main = host.main
    conversation, words = main.panes.conversation, main.found_words
    if not words:
        search_blocks(host)
        return
    keys = conversation.find(words)
    conversation.focus()
    if not keys:
        main.flash(f"nothing has “{words}”")
    elif not conversation.go_to(keys, step):
        main.flash(f"no {'older' if step < 0 else 'newer'} block has “{words}”")
    else:
        main.flash(f"{len(keys)} blocks have “{words}” · n older · N newer")


def go_to_wave(host: Host, step: int) -> None:
    """Mark the next or the previous wave."""
    _go_to(host, host.state.conversation(host.session_id).find_turns("wave"), step, "wave")


def go_to_proposal(host: Host, step: int) -> None:
    """Mark the next or the previous block with a proposal."""
    _go_to(host, host.state.conversation(host.session_id).find_proposals(), step, "proposal")


def _go_to(host: Host, keys: tuple[str, ...], step: int, what: str) -> None:
    conversation = host.main.panes.conversation
    conversation.focus()
    if not conversation.go_to(keys, step):
        host.main.flash(f"no {what} {'above' if step < 0 else 'below'}")


def fold_all(host: Host) -> None:
    """Unfold every block, or fold all where none is folded."""
    conversation = host.main.panes.conversation
    conversation.action_unmark()
    conversation.action_fold(not conversation.can_fold(False))


def copy_block(host: Host) -> None:
    """Copy the marked block, or the newest."""
    host.main.panes.conversation.action_copy()


def _has_session(context: ActionContext) -> bool:
    return context.has_session


def _block(
    action_id: str, title: str, label: str, key: str, run: object, footer: int = 0
) -> Action[Host]:
    return Action(
        action_id, "Look", title, label, (), (key,), "conversation", run=run,  # type: ignore[arg-type]
        when=_has_session, needs="a session", footer=footer,
        footer_when=lambda c: c.pane == "conversation",
    )  # fmt: skip


BLOCK_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "to_conversation", "Look", "Go into the conversation, and back", "blocks", ("alt+c",),
        run=focus_conversation, synonyms="scroll blocks history focus",
    ),
    _block("open_block", "Open the block: diffs, output, thoughts, facts", "open", "enter", open_block, 2),
    _block("search", "Search the conversation", "search", "slash", search_blocks, 3),
    _block("find_older", "Go to an older match of the search", "older", "n", partial(find_block, step=-1)),
    _block("find_newer", "Go to a newer match of the search", "newer", "N", partial(find_block, step=1)),
    _block("wave_before", "Go to the previous wave", "wave before", "W", partial(go_to_wave, step=-1)),
    _block("wave_after", "Go to the next wave", "wave after", "w", partial(go_to_wave, step=1)),
    _block("proposal_before", "Go to the previous proposal", "proposal before", "P",
           partial(go_to_proposal, step=-1)),
    _block("proposal_after", "Go to the next proposal", "proposal after", "p",
           partial(go_to_proposal, step=1)),
    _block("fold_all", "Unfold all blocks, or fold them", "fold all", "z", fold_all),
    _block("copy_block", "Copy the block", "copy", "y", copy_block),
)  # fmt: skip
