"""Who may open the screen in a browser: links that work once, and cookies of one folder of addresses.

A browser sends a cookie to every port of a host. A login's cookie therefore belongs to a folder that only the
browser knows which followed the link: another server on this machine is never sent it. See
``docs/reference/web.md``.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

COOKIE = "cockpit_screen"
MOST_LOGINS = 64
"""Browsers of one server; the oldest login ends when there is one more."""
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that followed a link: its folder of addresses, and its cookie's value."""

    folder: str
    cookie: str = field(repr=False)


class BrowserLogins:
    """The one link that works now, and the logins of those before it."""

    def __init__(self) -> None:
        self._link = secrets.token_urlsafe(_BYTES)
        self._logins: dict[str, Login] = {}

    @property
    def link(self) -> str:
        """The token of the link that works now."""
        return self._link

    def redeem(self, token: str) -> Login | None:
        """Return a new login for the link's token, which works no more; None for any other token."""
        if not _equal(token, self._link):
            return None
        self._link = secrets.token_urlsafe(_BYTES)
        login = Login(secrets.token_urlsafe(_BYTES // 2), secrets.token_urlsafe(_BYTES))
        while len(self._logins) >= MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        self._logins[login.folder] = login
        return login

    def accepts(self, folder: str, cookie: str) -> bool:
        """Whether the cookie is that of the folder's login."""
        login = self._logins.get(folder)
        return login is not None and _equal(cookie, login.cookie)


def _equal(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), kept.encode())
