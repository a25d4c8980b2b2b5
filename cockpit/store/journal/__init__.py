"""The journal: event types, rows chained by digest, following them live."""
