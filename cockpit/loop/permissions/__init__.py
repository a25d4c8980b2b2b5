"""What external agents ask permission for: read, judged, proposed and answered."""
