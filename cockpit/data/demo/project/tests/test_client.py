import unittest
from urllib.error import HTTPError, URLError

from parcel.client import CarrierDown, Client, UnknownParcel

FEED = b'{"events": [{"at": "2026-03-04T07:10:00+01:00", "code": "OD", "place": "Leipzig"}]}'
BASE = "https://carrier.test"


def answering(*answers):
    """A transport that gives one answer after the other, and the addresses it was asked for."""
    left, asked = list(answers), []

    def transport(url):
        asked.append(url)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return transport, asked


def refusal(code):
    return HTTPError(BASE, code, "no", None, None)


class Lookup(unittest.TestCase):
    def test_status(self):
        transport, asked = answering(FEED)
        self.assertEqual(Client(BASE, transport).status("P/1"), "out for delivery, Leipzig")
        self.assertEqual(asked, [f"{BASE}/parcels/P%2F1"])

    def test_nothing_scanned_yet(self):
        transport, _ = answering(b'{"events": []}')
        self.assertEqual(Client(BASE, transport).status("P-1"), "announced")

    def test_an_unknown_number_is_told_apart(self):
        transport, _ = answering(refusal(404))
        with self.assertRaises(UnknownParcel):
            Client(BASE, transport).events("P-1")

    def test_the_carrier_is_down(self):
        for problem in [refusal(503), URLError("no route")]:
            transport, _ = answering(problem)
            with self.subTest(problem), self.assertRaises(CarrierDown):
                Client(BASE, transport).events("P-1")
