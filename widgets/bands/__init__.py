"""The bands pane: band meter, facts, profile changes."""
