import unittest

from parcel.address import read
from parcel.label import WIDTH, label


class Label(unittest.TestCase):
    def test_every_line_has_the_same_width(self):
        to = read("Ada\n" + "A very long street " * 3 + "1\n10115 Berlin\nDE")
        rows = label("P-1", to, 1250).splitlines()
        self.assertEqual({len(row) for row in rows}, {WIDTH + 4})
        self.assertIn("1.25 kg", rows[-2])

    def test_a_declaration_goes_with_what_is_far(self):
        near = label("P-1", read("A\nB 1\n1080 Wien\nAT"), 1)
        far = label("P-1", read("A\nB 1\n10001 New York\nUS"), 1)
        self.assertNotIn("CN 22", near)
        self.assertIn("CN 22", far)
