"""The Textual application: it draws what the tables say, and asks :class:`cockpit.loop.runtime.Runtime`.

Importing this package imports no Textual.
"""
