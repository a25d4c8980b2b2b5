import unittest

from parcel.zones import needs_declaration, zone


class Zones(unittest.TestCase):
    def test_zone(self):
        self.assertEqual([zone(c) for c in ("DE", "fr ", "US")], ["home", "near", "far"])

    def test_only_what_leaves_the_union_is_declared(self):
        self.assertFalse(needs_declaration("NL"))
        self.assertTrue(needs_declaration("CH"))

    def test_a_name_is_no_code(self):
        with self.assertRaises(ValueError):
            zone("France")
