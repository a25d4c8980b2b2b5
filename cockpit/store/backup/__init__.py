"""Backups of a project's state: written while others write, restored as a whole or not at all."""
