"""``cockpit`` without a word: the screen of this project.

It goes past what reads a command line, which takes a tenth of the time to the first frame to load.
"""

from __future__ import annotations

from cockpit.core.processes import interrupt_on_termination


def main() -> int:
    """Open the screen on a new session; returns the exit code, and raises nothing."""
    interrupt_on_termination()
    try:
        from cockpit.commands.sessions.screen import open_screen

        return open_screen(None, {})
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from cockpit.commands.report_error import report_error

        return report_error(error)
