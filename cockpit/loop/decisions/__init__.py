"""Decisions on proposals: who decides, and the effect of each decision."""
