"""Traces over OpenTelemetry, folded from rows of the journal. Nothing here is loaded unless it is set."""
