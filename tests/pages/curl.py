"""The little of curl that the pages use, for machines without it: one request over a Unix socket."""

from __future__ import annotations

import argparse
import http.client
import socket
import sys
import urllib.parse

_READER = argparse.ArgumentParser()
_READER.add_argument("--unix-socket", required=True)
_READER.add_argument("-H", "--header", action="append", default=[])
_READER.add_argument("-X", "--request", default="")
_READER.add_argument("-d", "--data", default="")
_READER.add_argument("-m", "--max-time", type=float, default=60)
_READER.add_argument("-N", "-s", action="store_true")
_READER.add_argument("address")


class _OverSocket(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(given.unix_socket)


given = _READER.parse_args()
address = urllib.parse.urlsplit(given.address)
headers = dict(line.split(": ", 1) for line in given.header)
connection = _OverSocket(address.netloc, timeout=given.max_time)
method = given.request or ("POST" if given.data else "GET")
target = urllib.parse.urlunsplit(("", "", address.path, address.query, ""))
connection.request(method, target, given.data or None, headers)
response = connection.getresponse()
try:
    for line in response:
        sys.stdout.write(line.decode())
except TimeoutError:
    sys.exit(28)
