"""Textual widgets that know nothing of cockpit: plain records in, messages out.

They are grouped by pane. :mod:`widgets.views` has the views of the four panes, and
:mod:`widgets.text.clean` the boundary for untrusted text. Importing this package imports neither Textual
nor a widget. Specified in ``docs/reference/screen.md``.
"""
