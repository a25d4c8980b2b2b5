"""``python -m parcel``."""

import sys

from parcel.cli import main

sys.exit(main(sys.argv[1:]))
