"""The commands of the command line, each loaded when it is called.

Answers and JSON go to stdout, messages about the work to stderr. All output passes
:mod:`cockpit.commands.terminal`, which makes text from repositories, models and the store safe for a
terminal. Specified in ``docs/reference/commands.md``.
"""
