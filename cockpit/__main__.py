"""Entry point: a hook call takes a short way, all else goes to the command line."""

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
    from cockpit.cli import main as run_command

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
