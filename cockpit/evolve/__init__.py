"""A missing tool, written test first in the sandbox, adopted by the user."""
