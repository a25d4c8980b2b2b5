"""What the screen asks of notes: lists, and the decisions of the user."""
