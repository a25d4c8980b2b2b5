"""Rules about what should not have been committed, in any language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.decide.offline.rules.code_and_comments import added_code, is_python, split_line
from cockpit.decide.offline.rules.review_finding import Finding, Grade
from cockpit.decide.offline.rules.reviewed_change import Change, is_docs, is_source, is_test

_CONFLICT = re.compile(r"<<<<<<< \S|>>>>>>> \S|\|\|\|\|\|\|\| \S")
_MASKED = re.compile(r"\[masked:([a-z]+(?:-[a-z]+)*)\]")
# Masks of these kinds come from how random a value looks, not from a known shape.
_GUESSED = frozenset({"secret", "bearer", "url-password"})
_BIDI = re.compile("⟦U\\+(202[A-E]|206[6-9])⟧|[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"⟦U\+(00[0189][0-9A-F]|007F|200[EF]|2028|2029|061C)⟧")
_TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?P<rest>[^\n]*)")
_TRACKED = re.compile(r"#\d+|https?://|[A-Z]{2,}-\d+")
_STOPS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        r".py",
        re.compile(r"(?:^|[;:])\s*(?:breakpoint\(\)|(?:i?pdb|__import__\(\"\"\))\.set_trace\()"),
    ),
    (r".rb", re.compile(r"\bbinding\.(?:pry|irb)\b|\bbyebug\b")),
    (r".js .jsx .ts .tsx .mjs .cjs .vue .svelte", re.compile(r"^\s*debugger\s*;?\s*$")),
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
        re.compile(r"\bpickle\.loads?\(|\bmarshal\.loads?\(|\byaml\.load\((?!.*Loader)"),
        "Loading this format runs code that the data names. Who writes the data?",
    ),
    (
        re.compile(r"\bverify\s*=\s*False\b|_create_unverified_context"),
        "Certificates are not checked here. Is that meant for production?",
    ),
)


def conflict_markers(change: Change) -> Iterator[Finding]:
    for one, line in change.added(code_only=False):
        if _CONFLICT.match(line.text):
            grade: Grade = "question" if is_test(one.path) or is_docs(one.path) else "blocking"
            said = f"A conflict marker was committed: `{line.text.split()[0]}`."
            yield Finding(one.path, line.number, "conflict-marker", grade, said)


def secrets(change: Change) -> Iterator[Finding]:
    for one, line in change.added(code_only=False):
        for kind in dict.fromkeys(_MASKED.findall(line.text)):
            guessed = kind in _GUESSED or is_test(one.path) or is_docs(one.path)
            name = kind.replace("-", " ")
            said = (
                f"This looks like a {name}. If it is a real one, revoke it and read it from the "
                "environment."
                if guessed
                else f"A {name} is committed here. Revoke it, and read it from the environment."
            )
            yield Finding(
                one.path, line.number, "secret", "question" if guessed else "blocking", said
            )


def hidden_characters(change: Change) -> Iterator[Finding]:
    for one, line in change.added(code_only=False):
        if found := _BIDI.search(line.text):
            code = found[1] or f"{ord(found[0]):04X}"
            said = f"U+{code} changes the order in which this line is read: it may not do what it shows."
            grade: Grade = "question" if is_docs(one.path) else "blocking"
            yield Finding(one.path, line.number, "hidden-character", grade, said)
        elif found := _CONTROL.search(line.text):
            said = f"A raw control character, U+{found[1]}, stands in this line. An escape would show it."
            yield Finding(one.path, line.number, "hidden-character", "question", said)


def debugging(change: Change) -> Iterator[Finding]:
    printed: set[str] = set()
    for path, line, code in added_code(change):
        suffix = "." + path.rpartition(".")[2]
        for suffixes, stop in _STOPS:
            if suffix in suffixes.split() and stop.search(code):
                said = f"A debugger stop was left in: `{code.strip()}`."
                yield Finding(path, line, "debug-stop", "blocking", said)
        if not is_source(path) or _TALKS.search(path) or path in printed:
            continue
        for suffixes, name, pattern in _PRINTS:
            if (
                suffix in suffixes.split()
                and pattern.search(code)
                and not _prints(change, path, name)
            ):
                printed.add(path)
                said = f"Is this `{name.rstrip('(')}` meant to stay, or left over from debugging?"
                yield Finding(path, line, "debug-print", "nit", said)


def todos(change: Change) -> Iterator[Finding]:
    for one, line in change.added():
        _, comment = split_line(one.path, line.text.removesuffix("␍"))
        found = _TODO.search(comment)
        if found and not _TRACKED.search(found["rest"]):
            words = found[0].strip().rstrip(".")[:80]
            said = f"`{words}` is added. Do it here, or open an issue and name it."
            yield Finding(one.path, line.number, "todo", "nit", said)


def dangers(change: Change) -> Iterator[Finding]:
    for path, line, code in added_code(change):
        if not is_python(path) or is_test(path):
            continue
        for pattern, said in _DANGERS:
            if pattern.search(code):
                yield Finding(path, line, "danger", "question", said)


def binaries(change: Change) -> Iterator[Finding]:
    for one in change.files:
        if one.binary and one.status == "added":
            said = "A binary file is added; nothing here can read it. Does it belong in the repository?"
            yield Finding(one.path, 0, "binary", "question", said)


def _prints(change: Change, path: str, name: str) -> bool:
    """True when the file printed before this change: then printing is its trade."""
    ours = {line.number for one in change.files if one.path == path for line in one.added}
    known = change.lines.get(path, {})
    return any(name in text for number, text in known.items() if number not in ours)
