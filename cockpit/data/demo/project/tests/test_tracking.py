import unittest

from parcel.tracking import BadFeed, latest, read_feed

FEED = b"""{"events": [
  {"at": "2026-03-04T07:10:00+01:00", "code": "OD", "place": "Leipzig"},
  {"at": "2026-03-03T22:41:00+01:00", "code": "HU", "place": "Halle"},
  {"at": "2026-03-04T09:00:00+01:00", "code": "XX"}
]}"""


class Tracking(unittest.TestCase):
    def test_oldest_first(self):
        self.assertEqual([event.code for event in read_feed(FEED)], ["HU", "OD", "XX"])

    def test_words(self):
        said = [event.words() for event in read_feed(FEED)]
        self.assertEqual(said, ["at a hub, Halle", "out for delivery, Leipzig", "code XX"])

    def test_latest(self):
        self.assertIsNone(latest([]))
        self.assertEqual(latest(read_feed(FEED)).code, "XX")

    def test_what_is_no_feed(self):
        for data in [b"", b"<html>", b"{}", b'{"events": [{"at": "2026-03-04T07:10:00"}]}']:
            with self.subTest(data), self.assertRaises(BadFeed):
                read_feed(data)
