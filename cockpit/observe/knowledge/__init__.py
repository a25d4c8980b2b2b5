"""The librarian's index: what the project's documents, docstrings, notes, handoffs and skills say.

See ``docs/reference/knowledge.md``.
"""
