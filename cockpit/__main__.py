"""Entry point: a hook call and the bare screen take short ways, all else goes to the command line."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run ``cockpit`` or ``python -m cockpit``; return the exit code."""
    arguments = sys.argv[1:]
    if not os.environ.get("HOME", "").startswith("/"):
        from cockpit.core.state_folder import settle_home

        settle_home()
    if arguments[:1] == ["hook"] and (len(arguments) == 1 or arguments[1].startswith("--agent")):
        try:
            piped = not sys.stdin.isatty()
        except (AttributeError, ValueError):
            piped = True  # stdin is closed, so no user waits for a message
        if piped:
            # Before any other import, because an agent waits for the end of this process.
            from cockpit.hook.hook_call import serve

            serve(arguments[1:])
    # A shell sets the variable when it asks for completions.
    if not arguments and "_COCKPIT_COMPLETE" not in os.environ:
        from cockpit.commands.sessions.open_screen import main as open_screen

        return open_screen()
    collect_rarely()
    from cockpit.cli import main as run_command

    return run_command()


def collect_rarely() -> None:
    """Look for garbage less often than Python does by itself, and not at the end of the process."""
    import atexit
    import gc

    # After 150,000 new objects, not 700: what is imported stays, and to look through it for garbage again and
    # again is a fifth of a short command's time. A run begins with 85,000.
    gc.set_threshold(150_000, 20, 20)
    # The system takes all memory back: to look through it for garbage at the end is a seventh of that time.
    atexit.register(gc.freeze)


if __name__ == "__main__":
    sys.exit(main())
