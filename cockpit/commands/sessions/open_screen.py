"""``cockpit`` without arguments: open the screen of this project.

It skips the command-line parser, whose import takes a tenth of the time to the first frame.
"""

from __future__ import annotations

from cockpit.core.processes import interrupt_on_termination


def main() -> int:
    """Open the screen on a new session; return the exit code and raise nothing."""
    interrupt_on_termination()
    try:
        from cockpit.commands.sessions.switch_projects import open_screen

        return open_screen(None, {})
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        from cockpit.commands.report_error import report_error

        return report_error(error)
