import unittest

from parcel.weight import NotAWeight, grams, shown


class Weight(unittest.TestCase):
    def test_grams_and_kilograms(self):
        for text, expected in [("800 g", 800), ("1.5kg", 1500), ("1,5 KG", 1500), ("2kg", 2000)]:
            with self.subTest(text):
                self.assertEqual(grams(text), expected)

    def test_a_part_of_a_gram_counts_whole(self):
        self.assertEqual(grams("0.0001 kg"), 1)
        self.assertEqual(grams("1.2345 kg"), 1235)

    def test_what_is_no_weight(self):
        for text in ["", "heavy", "1.5", "-1 kg", "0 g", "1 kg or so"]:
            with self.subTest(text), self.assertRaises(NotAWeight):
                grams(text)

    def test_shown(self):
        self.assertEqual([shown(w) for w in (1, 999, 1000, 1250)], ["1 g", "999 g", "1 kg", "1.25 kg"])
