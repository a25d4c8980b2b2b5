"""What frames every screen: header, headline, key bar, timeline."""
