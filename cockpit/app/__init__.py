"""The Textual application: screens, projections of the journal, actions and key bindings.

The screens are fed by nothing but the journal (:mod:`cockpit.app.projection.fold`); what the person
decides goes to an :class:`cockpit.app.engine_client.Engine`. Importing this package imports no Textual.
"""
