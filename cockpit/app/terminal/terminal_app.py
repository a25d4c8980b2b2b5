"""A Textual application at a terminal of the user's: it ends with the terminal, whatever it is doing.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events
from textual.app import App, SuspendNotSupported
from textual.binding import Binding

import themes
from cockpit.access.notices import terminal_note
from cockpit.app.terminal.announce import has_title, title_sequence
from cockpit.app.terminal.terminal_watch import INTERRUPTED, TerminalWatch, watch_terminal
from cockpit.core.errors import CockpitError
from cockpit.core.processes import is_asked_to_end
from widgets.frame.footer import KeyBar
from widgets.text.clean import clean

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.theme import Theme

    from cockpit.app.external_editor import Editor

Answer = TypeVar("Answer")
_ERROR_S = 8.0
_NOTICE_S = 4.0


class TerminalApp(App[Answer], inherit_bindings=False):
    """An application of Textual's that :func:`run_at_terminal` runs."""

    terminal_watch: TerminalWatch | None = None
    """Watches the terminal while the application runs at one."""

    ENABLE_COMMAND_PALETTE = False  # its key and its palette are our own
    BINDINGS = [Binding("ctrl+z", "suspend_job", show=False, priority=True)]  # noqa: RUF012 -- Textual's way

    def __init__(self) -> None:
        super().__init__()
        self._title_shown = ""
        self.rings_bell = True
        self.unsent: list[str] = []
        """Texts of an editor that the end of the program cut off."""

    def get_theme(self, theme_name: str) -> Theme | None:
        """Return a theme by its name; one of Textual's own is mapped, so that every text stands out."""
        return themes.find(theme_name) or super().get_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of the stylesheet that Textual's own themes do not have."""
        return themes.fallbacks(self.current_theme)

    def use_theme(self, name: str) -> None:
        """Register our themes and use one; the default where there is none of that name."""
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = name if name in self.available_themes else themes.DEFAULT

    def show_error(self, text: str) -> None:
        """Show an error over the screen for some seconds."""
        self.notify(clean(text), severity="error", timeout=_ERROR_S, markup=False)

    def show_notice(self, text: str) -> None:
        """Show a notice over the screen for some seconds."""
        self.notify(clean(text), timeout=_NOTICE_S, markup=False)

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of the terminal: on Unix our own."""
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":
            return driver  # another system, or a driver that the environment names
        from cockpit.app.terminal.terminal_driver import TerminalDriver

        return TerminalDriver

    @property
    def is_showing(self) -> bool:
        """True while the user can see what is drawn: the terminal is here, and reads."""
        return bool(getattr(self._driver, "is_showing", True))

    def watch_app_focus(self, focus: bool) -> None:
        """Give a screen that opened while the terminal had no focus its own: Textual gives it none later.

        A key or a paste counts as the terminal's focus, whether the terminal tells of it or not.
        """
        if not focus or not self.screen_stack or self.screen.focused is not None:
            return
        chosen = self.AUTO_FOCUS if self.screen.AUTO_FOCUS is None else self.screen.AUTO_FOCUS
        widgets = self.screen.query(chosen) if chosen else ()
        first = next((widget for widget in widgets if widget.focusable), None)
        if first is not None:
            self.screen.set_focus(first, scroll_visible=False)

    async def on_event(self, event: events.Event) -> None:
        """Take a paste for the terminal's focus, as Textual takes a key."""
        if isinstance(event, events.Paste) and not self.app_focus:
            self.app_focus = True
        await super().on_event(event)

    def bell(self) -> None:
        """Ring, unless the user's settings say otherwise."""
        if self.rings_bell:
            super().bell()

    def on_key_bar_pressed(self, event: KeyBar.Pressed) -> None:
        """Press the key that was clicked, on whatever screen: it has the meaning of the key, no other."""
        event.stop()
        pressed = events.Key(event.key, None)
        # The button may have gone down a while ago, on a far terminal or a busy machine.
        pressed.time = getattr(self._driver, "clicked_at", 0.0) or pressed.time
        self.call_later(self.post_message, pressed)

    def press_key(self, key: str) -> None:
        """Press a key on the screen on top, as the user would."""
        # As the application: a key that a screen sends goes no further than that screen.
        self.call_later(self.simulate_key, key)

    def announce(self, title: str, note: str = "") -> None:
        """Set the terminal's title; for a note ring, and show it while the user looks at another window."""
        if note:
            self.bell()
        driver = self._driver
        if driver is None or driver.is_headless or not has_title(os.environ):
            return
        if title != self._title_shown:
            self._title_shown = title
            driver.write(title_sequence(title))
        if note and not self.app_focus:
            driver.write(terminal_note(note, os.environ))

    def action_suspend_job(self) -> None:
        """Stop the program until the shell brings it back (Ctrl+Z)."""
        driver = self._driver
        suspend = getattr(driver, "suspend_to_shell", None)
        if suspend is None or not getattr(driver, "has_shell", False):
            self.notify("No shell waits that could bring the program back.", timeout=_NOTICE_S)
            return
        suspend()

    @contextmanager
    def lend_terminal(self) -> Iterator[None]:
        """Give the terminal to another program in the block, and take it again after it.

        Ctrl+C and Ctrl+\\ are that program's meanwhile. Raises ``SuspendNotSupported``.
        """
        driver, watch = self._driver, self.terminal_watch
        if driver is None or not driver.can_suspend:
            raise SuspendNotSupported("This terminal cannot be handed to another program.")
        driver.suspend_application_mode()
        quit_before = signal.signal(signal.SIGQUIT, lambda *_: None)
        if watch is not None:
            watch.ignores_interrupt = True
        try:
            with driver.no_automatic_restart():
                yield
        finally:
            signal.signal(signal.SIGQUIT, quit_before)
            if watch is not None:
                watch.ignores_interrupt = False
            if not self.is_leaving:
                driver.resume_application_mode()
                self.refresh(layout=True)

    async def run_editor(self, editor: Editor, keep: Callable[[str], object]) -> str:
        """Give the terminal to an editor and return its text; nothing is drawn meanwhile.

        ``keep`` gets the text when the program ends before the editor does. Raises ``EditorFailed`` and
        ``SuspendNotSupported``.
        """
        with self.batch_update(), self.lend_terminal():
            running = asyncio.ensure_future(asyncio.to_thread(editor.run))
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.to_thread(editor.end)
                keep(await running)
                raise

    async def open_in_editor(self, root: Path, path: str, line: int) -> bool:
        """Open a file below ``root`` in the user's editor, at a line; False, with a notice, if it fails."""
        from cockpit.access.confined_paths import Confined
        from cockpit.app.external_editor import editor_command, open_file

        try:
            file = Confined(root).inside(path)
            argv = editor_command(os.environ)
            with self.batch_update(), self.lend_terminal():
                await asyncio.to_thread(open_file, file, max(1, line), argv=argv)
        except SuspendNotSupported:
            self.notify("This terminal cannot be handed to an editor.", severity="error")
        except CockpitError as error:
            self.notify(clean(str(error)), severity="error", markup=False)
        else:
            return True
        return False

    def list_dialog_texts(self) -> list[str]:
        """Return what was typed into the screens over the first one, each field by itself."""
        from textual.widgets import Input, TextArea

        texts: list[str] = []
        for screen in self.screen_stack[1:]:
            texts += [area.text for area in screen.query(TextArea)]
            texts += [field.value for field in screen.query(Input)]
        return [text for text in texts if text.strip()]

    def save_unsent(self) -> None:
        """Save what the user typed and has not sent. May be called in another thread, and more than once."""

    @property
    def is_terminal_lost(self) -> bool:
        """True once the terminal is gone."""
        return self.terminal_watch is not None and self.terminal_watch.is_lost

    @property
    def is_leaving(self) -> bool:
        """True once the terminal is gone or a signal asked for the end."""
        return self.terminal_watch is not None and self.terminal_watch.is_leaving

    def report_lost_terminal(self) -> None:
        """Note that the terminal is gone. Called in threads of the driver."""
        if self.terminal_watch is not None:
            self.terminal_watch.report_loss()


async def run_at_terminal(app: TerminalApp[Any]) -> int:
    """Show ``app`` until it exits, its terminal goes away or a signal asks for its end; return the code.

    That is 130 for the last two.
    """

    def give_back() -> None:
        driver = app._driver
        if driver is not None and hasattr(driver, "give_back_by_force"):
            driver.give_back_by_force()

    with watch_terminal(app, save=app.save_unsent, give_back=give_back) as watch:
        app.terminal_watch = watch
        # A signal that came before has cancelled this task: Textual would swallow that, and go on.
        await asyncio.sleep(0)
        if is_asked_to_end():
            return INTERRUPTED  # and so may Python have, where it was raised while a module was imported
        code = await app.run_async()
    if watch.is_leaving:
        return INTERRUPTED
    return app.return_code or (code if isinstance(code, int) else 0)


def ask_at_terminal(app: TerminalApp[Any]) -> Any:
    """Show ``app`` and return what it exits with. Raises KeyboardInterrupt when the terminal goes away."""
    asyncio.run(run_at_terminal(app))
    if app.is_leaving:
        raise KeyboardInterrupt
    return app.return_value


def choose_theme(theme: str) -> str:
    """Return the theme for the terminal: its own where it has but 16 colours, else ``theme``."""
    from rich.console import Console

    few = Console(file=sys.__stdout__).color_system == "standard"
    return themes.FEW_COLORS if few else theme
