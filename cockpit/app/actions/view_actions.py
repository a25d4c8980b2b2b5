"""Actions on the view and the program: panes, scrolling, theme, palette, help and quitting.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from functools import partial

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext, Pane
from cockpit.app.actions.decision_actions import prompt_is_undisturbed
from cockpit.app.actions.screen_actions import ActionScreen
from cockpit.app.host import Host
from cockpit.app.screens.first_words import WORDS
from cockpit.app.screens.panes import PANES
from widgets.text.detail import fields


def focus_next_pane(host: Host) -> None:
    """Move the focus to the next visible pane."""
    main = host.main
    visible: list[Pane] = [name for name in PANES if main.panes.solo in (None, name)]
    order: list[Pane] = ["prompt", *visible]
    place = order.index(main.pane) if main.pane in order else 0
    name = order[(place + 1) % len(order)]
    (main.prompt if name == "prompt" else main.panes.pane(name)).focus()


def show_only(host: Host, name: Pane) -> None:
    """Show one pane alone; again: show all panes."""
    main = host.main
    main.panes.show_only(name)
    if main.pane not in ("prompt", main.panes.solo or main.pane):
        main.prompt.focus()
    main.schedule_paint()


def toggle_work_focus(host: Host) -> None:
    """Move the focus to Chains & work; again: back to the prompt."""
    main = host.main
    if main.pane == "work":
        main.prompt.focus()
    else:
        main.panes.turn_to("work")
        main.panes.work.focus()
    main.schedule_paint()


def expand_pane(host: Host) -> None:
    """Show the focused pane alone; from the prompt, the open proposal or the conversation."""
    main = host.main
    pane = main.pane
    if main.panes.alone is not None and not main.panes.narrow:
        pane = main.panes.alone
    elif pane in ("prompt", ""):
        pane = "proposals" if main.queue.front is not None else "conversation"
    show_only(host, pane)


def scroll_by_page(host: Host, way: int) -> None:
    """Scroll the proposal in front where not all of it has room, else the conversation."""
    panes = host.main.panes
    if panes.is_visible("proposals") and host.main.key_policy.front and panes.proposals.is_cut_off:
        panes.proposals.action_page(way)
    elif way < 0:
        panes.conversation.scroll_page_up(animate=False)
    else:
        panes.conversation.scroll_page_down(animate=False)


def fold_thoughts(host: Host, *, folded: bool) -> None:
    """Fold or unfold what the agent thought."""
    host.main.panes.conversation.action_fold(folded)


def pick_theme(host: Host) -> None:
    """Pick a theme."""
    from cockpit.app.dialogs import pick_theme as dialog

    dialog.pick_theme(host)


def open_palette(host: Host) -> None:
    """Open the command palette."""
    from cockpit.app.actions.palette import Palette

    host.open_screen(Palette())


def open_help(host: Host) -> None:
    """Open the help screen; an action that is clicked there runs where it is valid."""
    from cockpit.app.dialogs.help import Help

    host.open_screen(Help(host.actions, host.prompt_commands), partial(_do_by_id, host))


def explain_words(host: Host) -> None:
    """List the words of the screen with their meanings."""
    from cockpit.app.dialogs.scroll_rows import ScrollRows

    host.open_screen(ScrollRows("Words", fields(WORDS.items())))


def dismiss_word(host: Host) -> None:
    """Explain the word above the footer no more, for good."""
    try:
        host.main.words.dismiss(host.main.word)
    except OSError as error:
        host.show_error(f"The word comes back at the next start: {error.strerror or error}")
    host.main.paint()


def _do_by_id(host: Host, action_id: str | None) -> None:
    screen = host.screen
    if not action_id or not isinstance(screen, ActionScreen):
        return
    pairs = screen.pressable()
    key = next((key for key, action in pairs if action.id == action_id), "")
    if key:
        host.press_key(key)
    elif any(action.id == action_id for action in screen.valid_actions()):
        screen.act(action_id)
    else:
        needs = next(action.needs for action in host.actions if action.id == action_id)
        host.show_notice(f"It needs {needs or 'another screen'}.")


def open_keys(host: Host) -> None:
    """Show the keys that work on this screen; the next key is pressed there."""
    from cockpit.app.dialogs.key_menu import HELP, KeyMenuDialog, list_keys

    def press(key: str | None) -> None:
        if key == HELP:
            open_help(host)
        elif key:
            host.press_key(key)

    host.open_screen(KeyMenuDialog(*list_keys(host.screen)), press)


def show_all_projects(host: Host) -> None:
    """Open the screen over all projects."""
    from cockpit.app.all_projects.open_from_project import open_all_projects

    open_all_projects(host)


def quit_program(host: Host) -> None:
    """Quit, after every session saved its state."""
    host.run_in_background(host.quit())


def _list_is_closed(context: ActionContext) -> bool:
    return not context.list_open


def _pane_action(action_id: Pane, name: str, key: str) -> Action[Host]:
    return Action(
        action_id,
        "Look",
        f"Show only {name}, and back",
        str(action_id),
        (key,),
        run=partial(show_only, name=action_id),
    )


VIEW_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "panes", "Look", "Go to the next pane", "panes", ("tab",), run=focus_next_pane,
        when=_list_is_closed, needs="no open list", footer=10,
    ),
    _pane_action("conversation", "the conversation", "f2"),
    _pane_action("bands", "the bands", "f3"),
    _pane_action("proposals", "the proposals", "f4"),
    _pane_action("work", "Chains & work", "f5"),
    Action(
        "to_work", "Look", "Go to Chains & work, and back", "work", ("alt+w",),
        run=toggle_work_focus,
    ),
    Action(
        "expand", "Look", "Give the pane the whole screen, and back", "expand", ("ctrl+o",),
        run=expand_pane,
    ),
    Action(
        "page_up", "Look", "Scroll up: the proposal, or the conversation", "scroll up",
        ("pageup",), run=partial(scroll_by_page, way=-1),
        when=lambda c: c.pane == "prompt", needs="focus in the prompt", palette=False,
    ),
    Action(
        "page_down", "Look", "Scroll down: the proposal, or the conversation", "scroll down",
        ("pagedown",), run=partial(scroll_by_page, way=1), when=lambda c: c.pane == "prompt",
        needs="focus in the prompt", palette=False,
    ),
    Action(
        "unfold_thoughts", "Look", "Unfold what the agent thought", "unfold", (), ("right",),
        "conversation", run=partial(fold_thoughts, folded=False), when=lambda c: c.can_unfold,
        needs="a folded thought", footer=4, palette=False,
    ),
    Action(
        "fold_thoughts", "Look", "Fold what the agent thought", "fold", (), ("left",),
        "conversation", run=partial(fold_thoughts, folded=True), when=lambda c: c.can_fold,
        needs="an unfolded thought", footer=4, palette=False,
    ),
)  # fmt: skip

PROGRAM_ACTIONS: tuple[Action[Host], ...] = (
    Action(
        "all_projects", "Look", "Show all projects and what waits in them", "all projects",
        ("alt+a",), run=show_all_projects, command="projects",
        synonyms="other repositories queue everywhere switch",
    ),
    Action(
        "theme", "Look", "Change the theme", "theme", run=pick_theme, command="theme",
        synonyms="colors colours dark light contrast settings appearance",
    ),
    Action(
        "palette", "Program", "Show all commands", "palette", ("ctrl+p",), run=open_palette,
        when=_list_is_closed, needs="no open list", footer=11, palette=False,
    ),
    Action(
        "keys", "Program", "Show the keys that work here", "keys", ("alt+h",), run=open_keys,
        when=_list_is_closed, needs="no open list", command="keys",
        synonyms="shortcuts hints bindings which mouse",
    ),
    Action(
        "help", "Program", "Show keys and commands", "help", ("f1",), run=open_help, footer=14,
        command="help", synonyms="shortcuts bindings how what",
    ),
    Action(
        "words", "Program", "Explain the words of the screen", "words", run=explain_words,
        command="words", synonyms="jargon glossary terms meaning what",
    ),
    Action(
        "dismiss_word", "Program", "Dismiss the word that is explained", "dismiss", ("alt+x",),
        run=dismiss_word, when=lambda c: c.has_word, needs="a word that is explained",
        synonyms="jargon hide",
    ),
    Action(
        "leave", "Program", "Quit, when the prompt is empty", "quit", ("ctrl+d",),
        run=quit_program, when=prompt_is_undisturbed, needs="an empty prompt", palette=False,
    ),
    Action(
        "suspend", "Program", "Suspend cockpit; `fg` in the shell brings it back", "suspend",
        ("ctrl+z",), needs="a shell with job control", palette=False,
    ),
    Action(
        "quit", "Program", "Quit", "quit", run=quit_program, command="quit",
        synonyms="exit leave close",
    ),
)  # fmt: skip
