"""Where cockpit starts: a hook call goes its own short way, everything else to the command line."""

from __future__ import annotations

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
            from cockpit.hook.call import serve

            serve(words[1:])
    from cockpit.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
