"""The commands of the command line, each loaded when it is called.

JSON goes to stdout, words about the work to stderr. What came from a repository, a model or the
store passes :mod:`cockpit.commands.terminal` on its way out.
"""
