"""The short cut of masking: whether a text can hold a secret at all.

Apart from :mod:`cockpit.core.secrets`, whose patterns take longer to compile than most texts that
have none of these signs deserve.
"""

from __future__ import annotations

SIGNS = (
    # names that secrets are given, and what stands in addresses and hunks
    *("key", "token", "secret", "passw", "passphrase", "pwd", "credential", "basic", "bearer"),
    *("://", "@@ -"),
    # how known secrets begin
    *("ckp_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-"),
    *("akia", "asia", "abia", "acca", "aiza", "ya29.", "gocspx-", "xox", "xapp-"),
    *("hooks.slack.com", "sk_live", "sk_test", "rk_live", "rk_test", "npm_", "pypi-", "hf_"),
    *("sg.", "eyj"),
)
"""In lower case: one of these stands in whatever a pattern of masking finds. Most texts have none and
need no pattern."""


def lacks_secret_signs(text: str) -> bool:
    """Whether masking would certainly leave ``text`` as it is; True is not given for all such."""
    if not text.isascii():
        return False  # lone surrogates, and letters that equal an ASCII one but for their case
    lowered = text.lower()
    for sign in SIGNS:  # noqa: SIM110 - any() over a generator takes twice as long
        if sign in lowered:
            return False
    return True
