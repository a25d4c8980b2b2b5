"""The command line: ``parcel price``, ``parcel label`` and ``parcel track``."""

from __future__ import annotations

import argparse
import sys
from typing import Sequence

from parcel import address, rates, weight
from parcel.client import CarrierDown, Client, UnknownParcel
from parcel.label import label
from parcel.zones import zone

CARRIER = "https://tracking.carrier.example/v2"


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit status. What is wrong is said on standard error."""
    options = _parser().parse_args(argv)
    try:
        print(options.answer(options))
    except (ValueError, UnknownParcel, CarrierDown) as error:
        print(f"parcel: {error}", file=sys.stderr)
        return 1
    return 0


def _price(options: argparse.Namespace) -> str:
    cents = rates.price(weight.grams(options.weight), zone(options.country))
    return f"{cents // 100}.{cents % 100:02d} EUR"


def _label(options: argparse.Namespace) -> str:
    return label(options.number, address.read(sys.stdin.read()), weight.grams(options.weight))


def _track(options: argparse.Namespace) -> str:
    return Client(options.carrier).status(options.number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="parcel", description="Postage and tracking.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    price = commands.add_parser("price", help="what a parcel costs")
    price.add_argument("weight", help="800g, 1.5kg")
    price.add_argument("country", nargs="?", default="DE")
    price.set_defaults(answer=_price)
    printed = commands.add_parser("label", help="a label; the address comes from standard input")
    printed.add_argument("number")
    printed.add_argument("weight")
    printed.set_defaults(answer=_label)
    track = commands.add_parser("track", help="where a parcel is")
    track.add_argument("number")
    track.add_argument("--carrier", default=CARRIER)
    track.set_defaults(answer=_track)
    return parser
