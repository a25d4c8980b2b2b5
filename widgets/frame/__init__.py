"""The frame of every screen: header, headline, footer, timeline."""
