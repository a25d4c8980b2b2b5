"""Where cockpit starts: a hook call and the bare screen go short ways, all else to the command line."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """``cockpit`` and ``python -m cockpit``; returns the exit code."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and (len(words) == 1 or words[1].startswith("--agent")):
        try:
            piped = not sys.stdin.isatty()
        except (AttributeError, ValueError):
            piped = True  # closed: no person waits for words
        if piped:
            # Before anything else is imported: an agent waits for the end of this process.
            from cockpit.hook.hook_call import serve

            serve(words[1:])
    if (
        not words and "_COCKPIT_COMPLETE" not in os.environ
    ):  # a shell asks for completions with that
        from cockpit.commands.sessions.open_screen import main as bare

        return bare()
    from cockpit.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
