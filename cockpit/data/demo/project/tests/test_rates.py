import unittest

from parcel.rates import TooHeavy, insurance, price


class Rates(unittest.TestCase):
    def test_heavier_costs_more(self):
        self.assertEqual(price(300, "home"), 399)
        self.assertEqual(price(1_999, "home"), 549)
        self.assertEqual(price(2_001, "home"), 699)

    def test_farther_costs_more(self):
        self.assertEqual([price(800, zone) for zone in ("home", "near", "far")], [399, 899, 1_499])

    def test_too_heavy(self):
        with self.assertRaises(TooHeavy):
            price(20_001, "home")

    def test_insurance(self):
        self.assertEqual([insurance(v) for v in (0, 5_000, 5_001, 15_000)], [0, 0, 1, 100])
        self.assertEqual(price(800, "home", value=15_000), 499)
