"""Textual widgets that know nothing of cockpit: plain dataclasses in, messages out.

Views are in :mod:`widgets.views`, the boundary for untrusted text in :mod:`widgets.text.clean`; each
widget has a module of its own. Importing this package imports neither Textual nor a widget.
"""
