"""Sends parcels to depots."""
