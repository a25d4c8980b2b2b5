import unittest

from parcel.address import BadAddress, read

ADA = "Ada Lovelace\n12 St James's Square\nSW1Y 4JH London\ngb"


class Addresses(unittest.TestCase):
    def test_read(self):
        ada = read(ADA)
        self.assertEqual((ada.postcode, ada.city, ada.country), ("SW1Y 4JH", "London", "GB"))
        self.assertEqual(ada.lines()[-1], "GB")

    def test_a_second_line_of_the_street(self):
        read_ = read("Kurt Gödel\nBackyard\nLange Gasse 72\n1080 Wien\nAT")
        self.assertEqual(read_.street, ("Backyard", "Lange Gasse 72"))

    def test_the_wrong_line_is_named(self):
        for text, words in [
            ("Ada\nLondon", "4 or 5 lines"),
            ("Ada\nStreet 1\n1080 Berlin\nDE", "postcode of DE"),
            ("Ada\nStreet 1\n10115 Berlin\nGermany", "country code"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(BadAddress, words):
                read(text)
