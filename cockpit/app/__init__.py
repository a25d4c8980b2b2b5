"""The Textual application: screens, projections of the journal, actions and keys.

The screens read only the journal (:mod:`cockpit.app.projection.fold`). Decisions of the user go to an
:class:`cockpit.app.engine_client.Engine`. Importing this package imports no Textual.
"""
