"""Rules about text that should not have been committed, in any language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.code_and_comments import added_code, is_python, split_line
from cockpit.decide.offline.rules.review_finding import Finding, Grade
from cockpit.decide.offline.rules.reviewed_change import Change, is_docs, is_source

_CONFLICT = re.compile(r"<<<<<<< \S|>>>>>>> \S|\|\|\|\|\|\|\| \S")
_MASKED = re.compile(r"\[masked:([a-z]+(?:-[a-z]+)*)\]")
# Masks of these kinds come from how random a value looks, not from a known shape.
_GUESSED = frozenset({"secret", "bearer", "url-password"})
_BIDI = re.compile("⟦U\\+(202[A-E]|206[6-9])⟧|[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"⟦U\+(00[0189][0-9A-F]|007F|200[EF]|2028|2029|061C)⟧")
_TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?P<rest>[^\n]*)")
_TRACKED = re.compile(r"#\d|https?://|[A-Z]{2}-\d")
_STOPS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        r".py",
        re.compile(r"(?:^|[;:])\s*(?:breakpoint\(\)|(?:i?pdb|__import__\(\"\"\))\.set_trace\()"),
    ),
    (r".rb", re.compile(r"\bbinding\.(?:pry|irb)\b|\bbyebug\b")),
    (r".js .jsx .ts .tsx .mjs .cjs .vue .svelte", re.compile(r"^\s*debugger\s*+;?\s*$")),
)
_PRINTS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    (r".py", "print(", re.compile(r"^\s*print\(")),
    (r".js .jsx .ts .tsx .mjs .cjs .vue .svelte", "console.log", re.compile(r"\bconsole\.log\(")),
    (r".rs", "dbg!", re.compile(r"\bdbg!\(")),
    (r".php", "var_dump", re.compile(r"\bvar_dump\(")),
)
_TALKS = re.compile(
    r"(?:^|/)(?:cli|scripts?|bin|tools?|bench(?:marks?)?|examples?|demo|manage|setup|noxfile|tasks)"
    r"(?:[/._]|\Z)|__main__|(?:_cli|_script)\."
)
_DANGERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?<![\w.])(?:eval|exec)\("),
        "`eval` and `exec` run whatever text reaches them. Where does it come from?",
    ),
    (
        re.compile(r"\bshell\s*=\s*True\b|\bos\.system\("),
        "This goes through a shell. Can any part of the command come from outside?",
    ),
    (
        re.compile(r"\bpickle\.loads?\(|\bmarshal\.loads?\(|\byaml\.load\((?!.{0,500}Loader)"),
        "Loading this format runs code that the data names. Who writes the data?",
    ),
    (
        re.compile(r"\bverify\s*=\s*False\b|_create_unverified_context"),
        "Certificates are not checked here. Is that meant for production?",
    ),
)


def conflict_markers(change: Change) -> Iterator[Finding]:
    for file, line in change.added(code_only=False):
        if _CONFLICT.match(line.text):
            grade: Grade = "question" if is_test(file.path) or is_docs(file.path) else "blocking"
            message = f"A conflict marker was committed: `{line.text.split()[0]}`."
            yield Finding(file.path, line.number, "conflict-marker", grade, message)


def secrets(change: Change) -> Iterator[Finding]:
    for file, line in change.added(code_only=False):
        for kind in dict.fromkeys(_MASKED.findall(line.text)):
            is_guess = kind in _GUESSED or is_test(file.path) or is_docs(file.path)
            name = kind.replace("-", " ")
            message = (
                f"This looks like a {name}. If it is a real one, revoke it and read it from the "
                "environment."
                if is_guess
                else f"A {name} is committed here. Revoke it, and read it from the environment."
            )
            yield Finding(
                file.path, line.number, "secret", "question" if is_guess else "blocking", message
            )


def hidden_characters(change: Change) -> Iterator[Finding]:
    for file, line in change.added(code_only=False):
        if match := _BIDI.search(line.text):
            code = match[1] or f"{ord(match[0]):04X}"
            message = f"U+{code} changes the order in which this line is read: it may not do what it shows."
            grade: Grade = "question" if is_docs(file.path) else "blocking"
            yield Finding(file.path, line.number, "hidden-character", grade, message)
        elif match := _CONTROL.search(line.text):
            message = f"A raw control character, U+{match[1]}, stands in this line. An escape would show it."
            yield Finding(file.path, line.number, "hidden-character", "question", message)


def debugging(change: Change) -> Iterator[Finding]:
    printed: set[str] = set()
    for path, line, code in added_code(change):
        suffix = "." + path.rpartition(".")[2]
        for suffixes, stop in _STOPS:
            if suffix in suffixes.split() and stop.search(code):
                message = f"A debugger stop was left in: `{code.strip()}`."
                yield Finding(path, line, "debug-stop", "blocking", message)
        if not is_source(path) or _TALKS.search(path) or path in printed:
            continue
        for suffixes, name, pattern in _PRINTS:
            if (
                suffix in suffixes.split()
                and pattern.search(code)
                and not _prints(change, path, name)
            ):
                printed.add(path)
                message = (
                    f"Is this `{name.rstrip('(')}` meant to stay, or left over from debugging?"
                )
                yield Finding(path, line, "debug-print", "nit", message)


def todos(change: Change) -> Iterator[Finding]:
    for file, line in change.added():
        _, comment = split_line(file.path, line.text.removesuffix("␍"))
        match = _TODO.search(comment)
        if match and not _TRACKED.search(match["rest"]):
            words = match[0].strip().rstrip(".")[:80]
            message = f"`{words}` is added. Do it here, or open an issue and name it."
            yield Finding(file.path, line.number, "todo", "nit", message)


def dangers(change: Change) -> Iterator[Finding]:
    for path, line, code in added_code(change):
        if not is_python(path) or is_test(path):
            continue
        for pattern, message in _DANGERS:
            if pattern.search(code):
                yield Finding(path, line, "danger", "question", message)


def binaries(change: Change) -> Iterator[Finding]:
    for file in change.files:
        if file.binary and file.status == "added":
            message = "A binary file is added; nothing here can read it. Does it belong in the repository?"
            yield Finding(file.path, 0, "binary", "question", message)


def _prints(change: Change, path: str, name: str) -> bool:
    """True when the file printed before this change: then printing is its trade."""
    ours = {line.number for file in change.files if file.path == path for line in file.added}
    lines = change.lines.get(path, {})
    return any(name in text for number, text in lines.items() if number not in ours)
