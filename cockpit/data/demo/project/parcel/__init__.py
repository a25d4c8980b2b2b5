"""Postage and tracking for a small shop: what a parcel costs, its label, and where it is."""

__version__ = "0.4.0"
