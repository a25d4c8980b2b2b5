import contextlib
import io
import unittest

from parcel.cli import main


def run(*argv):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    return code, out.getvalue(), err.getvalue()


class CommandLine(unittest.TestCase):
    def test_price(self):
        self.assertEqual(run("price", "800g"), (0, "3.99 EUR\n", ""))
        self.assertEqual(run("price", "1.5kg", "US"), (0, "22.99 EUR\n", ""))

    def test_what_is_wrong_is_said(self):
        code, out, err = run("price", "heavy")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("'heavy' is no weight", err)
