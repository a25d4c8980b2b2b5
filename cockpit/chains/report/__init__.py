"""The report of a chain, and the measures over chains."""
