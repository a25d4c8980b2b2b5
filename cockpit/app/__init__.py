"""The Textual application: screens, dialogs, actions, and the state that they draw.

Importing this package imports no Textual.
"""
