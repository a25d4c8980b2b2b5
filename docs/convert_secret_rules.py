"""Convert gitleaks' rules into cockpit's: ``python docs/convert_secret_rules.py gitleaks.toml``.

gitleaks (https://github.com/gitleaks/gitleaks, MIT) keeps a list of patterns of secrets for Go. This writes
those that cockpit uses to ``cockpit/data/secret_rules.json``, in Python's syntax: a rule is a kind, a pattern
for small letters that finds every text which may hold such a secret (``sign``), the least entropy, and a
pattern in which one group (``group``, or the first that is not empty) is the secret.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).resolve().parent.parent / "cockpit" / "data" / "secret_rules.json"
_OWN = {"generic-api-key", "private-key", "jwt", "jwt-base64", "pkcs12-file", "curl-auth-header"}
_OWN |= {"curl-auth-user", "kubernetes-secret-yaml", "nuget-config-password", "openai-api-key"}
_OWN |= {"hashicorp-tf-password", "sidekiq-sensitive-url"}
"""cockpit has patterns of its own for these."""
_PUBLIC = re.compile(r"-(?:client-id|access-id|user-api-id|public-key|pub-key|pub-api-key)$")
"""Names of rules for identifiers that are not secrets."""
_SIGNS = {
    "1password-service-account-token": r"ops_eyj",
    "authress-service-client-access-key": r"\.acc[_-][a-z0-9-]{10}",
    "airtable-personnal-access-token": r"pat[a-z0-9]{14}\.",
    "atlassian-api-token": r"atatt3|(?:atlassian|confluence|jira)[ \t\w.-]{0,20}[\s'\"]{0,3}[=:>|,?]",
    "aws-access-token": r"(?:a3t[a-z0-9]|akia|asia|abia|acca)[a-z2-7]{16}",
    "azure-ad-client-secret": r"\dq~[\w~.-]{31}",
    "facebook-access-token": r"\d{15}[|%][\w-]{27}",
    "freemius-secret-key": r"secret_key[\"']\s*=>",
    "gocardless-api-token": r"live_[\w=-]{40}",
    "grafana-cloud-api-token": r"glc_",
    "harness-api-key": r"(?:pat|sat)\.[\w-]{22}\.",
    "infracost-api-token": r"ico-[a-z0-9]{32}",
    "lob-api-key": r"(?:live|test)_[a-f0-9]{35}",
    "octopus-deploy-api-key": r"api-[a-z0-9]{26}",
    "sendgrid-api-token": r"sg\.[\w=.-]{66}",
    "settlemint-application-access-token": r"sm_aat_",
    "sourcegraph-access-token": r"sgp_",
    "stripe-access-token": r"[sr]k_(?:live|test|prod)_",
    "sumologic-access-token": r"sumo[ \t\w.-]{0,20}[\s'\"]{0,3}[=:>|,?]",
    "linear-client-secret": r"linear[ \t\w.-]{0,20}[\s'\"]{0,3}[=:>|,?]",
    "jfrog-api-key": r"(?:jfrog|artifactory|bintray|xray)[ \t\w.-]{0,20}[\s'\"]{0,3}[=:>|,?]",
    "jfrog-identity-token": r"(?:jfrog|artifactory|bintray|xray)[ \t\w.-]{0,20}[\s'\"]{0,3}[=:>|,?]",
    "okta-access-token": r"okta[ \t\w.-]{0,20}[\s'\"]{0,3}[=:>|,?]",
    "intra42-client-secret": r"s-s4t2(?:ud|af)-",
    "twilio-api-key": r"sk[0-9a-f]{32}",
    "vault-service-token": r"hvs\.|s\.[a-z0-9]{24}",
}
"""Signs of rules whose words are in most texts."""
_WHOLE = {"microsoft-teams-webhook"}
"""Rules whose first group is a part of the secret."""
_ENDS = (r"""(?:[\x60'"\s;]|\\[nr]|$)""", r"""(?:[\x60'"\s;]|\\[nr]|$|\b)""")
_LEAD = r"[\w.-]{0,50}?"


def convert(rule: dict[str, Any]) -> dict[str, Any] | None:
    """Convert one rule; None for one that cockpit does not use."""
    pattern = rule.get("regex", "")
    if not pattern or rule["id"] in _OWN or _PUBLIC.search(rule["id"]):
        return None
    for end in _ENDS:
        pattern = pattern.replace(end, r"(?![\w=-])")
    # Masking replaces the secret alone: what may come before its name only costs time.
    pattern = pattern.replace(_LEAD, "")
    # A whole hash of a commit is not a token.
    pattern = pattern.replace(r"|[a-fA-F0-9]{40})\b)", r")\b)")
    pattern = (
        pattern.replace(r"\z", r"\Z")
        .replace("[[:alnum:]]", "[A-Za-z0-9]")
        .replace("[:alnum:]", "A-Za-z0-9")
    )
    pattern = re.sub(r"^(\(\?i\))?\\b", r"\1(?<![A-Za-z0-9])", pattern)
    pattern = _scope_flags(pattern)
    if rule["id"] in _WHOLE:
        pattern = re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)
    if not re.compile(pattern, re.ASCII).groups:
        pattern = re.sub(r"^(\(\?i\))?(.*)$", r"\1(\2)", pattern)
    words = sorted(re.escape(word) for word in rule["keywords"])
    return {
        "kind": rule["id"],
        "sign": _SIGNS.get(rule["id"], "|".join(words)),
        "entropy": rule.get("entropy", 0),
        "group": rule.get("secretGroup", 0),
        "pattern": pattern,
    }


def _scope_flags(pattern: str) -> str:
    """Turn ``a(?i)b`` into ``a(?i:b)``: Go's flag lasts to the end of its group."""
    place = pattern.find("(?i)", 1)
    while place >= 0:
        depth, at = 0, place + 4
        while at < len(pattern):
            character = pattern[at]
            if character == "\\":
                at += 1
            elif character == "[":
                at = pattern.index("]", at + 2)
            elif character == "(":
                depth += 1
            elif character == ")":
                if depth == 0:
                    break
                depth -= 1
            at += 1
        pattern = f"{pattern[:place]}(?i:{pattern[place + 4 : at]}){pattern[at:]}"
        place = pattern.find("(?i)", 1)
    return pattern


def main(source: str) -> None:
    """Write the rules of the file ``source``."""
    table = tomllib.loads(Path(source).read_text(encoding="utf-8"))
    rules = [rule for rule in map(convert, table["rules"]) if rule is not None]
    lines = ",\n".join(json.dumps(rule, sort_keys=True) for rule in rules)
    OUTPUT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
