"""Text projections of the journal: stories, reports, transcripts, metrics."""
