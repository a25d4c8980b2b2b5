"""A fast check whether a text can contain a secret at all.

Apart from :mod:`cockpit.core.secrets`, because compiling its patterns takes longer than most hook
calls. Specified in ``docs/reference/security.md``.
"""

from __future__ import annotations

from cockpit.core.masking.long_runs import has_long_run

SIGNS = (
    # names of secrets, and signs of addresses and hunks
    *("token", "secret", "passw", "passphrase", "pwd", "credential", "basic", "bearer"),
    *("://", "@@ -"),
    # prefixes of known secrets
    *("ckp_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-"),
    *("akia", "asia", "abia", "acca", "aiza", "ya29.", "gocspx-", "xox", "xapp-"),
    *("hooks.slack.com", "sk_live", "sk_test", "rk_live", "rk_test", "npm_", "pypi-", "hf_"),
    *("sg.", "eyj"),
    # before secrets in headers, files and options
    *("cookie", 'auth"', "auth\\", "_auth", "mysql", "sshpass"),
)
"""Signs, in lower case: every text that a pattern of :mod:`cockpit.core.secrets` matches contains one
or a key.

Most texts contain none; whether one of the kept rules matches takes one more pattern.
"""
_KEYS = ("api", "access", "private", "auth", "account", "signing", "encryption")
"""Words before ``key`` in the names of secrets; the word alone is everywhere."""


def lacks_secret_signs(text: str) -> bool:
    """Tell whether masking is certain to leave ``text`` as it is.

    False does not mean that there is a secret.
    """
    if not text.isascii():
        return False  # lone surrogates, and letters that equal an ASCII one but for their case
    lowered = text.lower()
    for sign in SIGNS:
        if sign in lowered:
            return False
    if "key" in lowered and any(word in lowered for word in _KEYS):
        return False
    if not has_long_run(lowered):
        return True
    # Here: few texts of a hook call come this far.
    from cockpit.core.masking.hidden_secrets import has_hidden_text
    from cockpit.core.masking.secret_rules import matches_sign

    return not (matches_sign(lowered) or has_hidden_text(text))
