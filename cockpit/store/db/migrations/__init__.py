"""Numbered SQL files, applied in order, recorded by name and checksum."""
