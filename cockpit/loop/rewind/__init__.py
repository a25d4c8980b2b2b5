"""Going back to an earlier wave, with the files that a session wrote since, and forward again."""
