"""Finding subgraphs."""
