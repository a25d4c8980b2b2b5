"""Text before it is drawn: cleaning, styles, number formats."""
