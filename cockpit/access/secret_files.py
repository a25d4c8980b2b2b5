"""Files whose purpose is to hold secrets, by their names.

Their content is never read into a context, and a command that reads one is not a read. See
``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache

_SENSITIVE = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass",
    ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", "id_rsa", "id_dsa", "id_ecdsa",
    "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "*.asc", "*.gpg", "*.tfstate", "*.tfvars", "credentials", "credentials.json",
    "credentials.yml", "credentials.yaml", "credentials.toml", "secrets.*", "*.secrets",
    "service-account*.json", "master.key", "vault-password*", ".vault_pass*", "kubeconfig",
)  # fmt: skip
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist", "*.py", "*.pub", "*.md", "*.rst",
    "cacert.pem",  # the certificates that programs trust
)  # fmt: skip
_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store"})
"""Folders whose every file holds secrets."""


def is_sensitive(path: str) -> bool:
    """Whether a file of this name is meant to hold secrets, whatever its content."""
    folder, _, name = path.rpartition("/")
    if folder and not _FOLDERS.isdisjoint(folder.split("/")):
        return True
    name = name.lower()
    return _pattern(_SENSITIVE).match(name) is not None and not _pattern(_HARMLESS).match(name)


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs)))
