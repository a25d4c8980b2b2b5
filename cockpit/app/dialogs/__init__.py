"""Dialogs that open over a screen."""
