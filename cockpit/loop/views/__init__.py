"""Views of the journal as text: stories, reports, transcripts, metrics, log lines."""
