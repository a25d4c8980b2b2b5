"""Settings in layers: defaults, user file, project file, environment, flags."""
