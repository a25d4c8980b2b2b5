"""Commands on stored records: journal, metrics, prune."""
