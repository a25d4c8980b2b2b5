"""Orient: the facts of a session, compiled under a budget into what one wave knows."""
