"""Files that are stored as a reference and an outline instead of their content.

These are files whose purpose is to hold secrets (only the names that they set are stored) and texts too
large for any packet (only the outline is stored). Agents can request lines of a large file, but not of a
file of secrets. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

LARGE_BYTES = 262_144
"""Texts of more bytes than this are stored by reference."""

_SENSITIVE = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass",
    ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", "id_rsa", "id_dsa", "id_ecdsa",
    "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "*.asc", "*.gpg", "*.tfstate", "*.tfvars", "credentials", "credentials.json",
    "credentials.yml", "credentials.yaml", "credentials.toml", "secrets.*", "*.secrets",
    "service-account*.json", "master.key", "vault-password*", ".vault_pass*", "kubeconfig",
)  # fmt: skip
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist", "*.py", "*.pub", "*.md", "*.rst")
# What follows the sign keeps the padding of base64, which ends a line, from looking like a name.
_NAME = re.compile(
    r"\s{0,16}(?:export\s{1,4}|set\s{1,4})?[\"']?([A-Za-z_][\w.-]{0,47})[\"']?\s{0,8}"
    r"(?:=(?=[ \t]{0,8}[^\s=])|:(?=\s|$))"
)
_MOST_NAMES = 200


def is_sensitive(path: str) -> bool:
    """Whether a file of this name is meant to hold secrets, whatever its content."""
    name = path.rpartition("/")[2].lower()
    if any(fnmatchcase(name, pattern) for pattern in _HARMLESS):
        return False
    return any(fnmatchcase(name, pattern) for pattern in _SENSITIVE)


def why_by_reference(path: str, size: int) -> str:
    """Explain why ``size`` bytes of the file ``path`` are stored by reference; empty if they are not."""
    if is_sensitive(path):
        return "holds secrets: only the names in it, by reference"
    if size > LARGE_BYTES:
        return f"{size:,} bytes are too many for a packet: its outline, by reference; ask for lines"
    return ""


def list_setting_names(text: str) -> str:
    """List the names that a settings file sets, one a line with its number, without values."""
    lines = [
        f"{number}: {match[1]}=…"
        for number, line in enumerate(text.split("\n"), start=1)
        if (match := _NAME.match(line))
    ]
    more = len(lines) - _MOST_NAMES
    return "\n".join([*lines[:_MOST_NAMES], f"… {more} more names"] if more > 0 else lines)
