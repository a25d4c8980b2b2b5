"""Routes."""

from courier.parcel import Parcel
from courier.route import longest_wait, route


def test_heavy_parcels_are_freight():
    assert route(Parcel("1", 25_000, "north")) == "freight"


def test_light_parcels_are_letters():
    assert route(Parcel("2", 120, "north")) == "letter"


def test_waits_add_up():
    assert longest_wait(4) == 3.5
