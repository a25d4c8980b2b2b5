"""Screens of one list, with the detail of the row under the cursor."""
