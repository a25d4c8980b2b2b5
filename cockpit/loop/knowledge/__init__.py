"""The librarian in the loop: it keeps the index fresh and searches when a task asks for knowledge."""
