"""Commands of the prompt: ``/NAME WORDS``. Specified in ``docs/reference/screen.md``, commands."""
