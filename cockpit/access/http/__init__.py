"""HTTP connections of every server of cockpit: their limits."""
