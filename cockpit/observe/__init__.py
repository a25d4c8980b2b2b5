"""Observe: the gateway for all context, its sources, fan-out, token counts, knowledge."""
