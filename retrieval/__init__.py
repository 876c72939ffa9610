"""The retrieval engine: encoders, encoding, vectors on disk, exact nearest neighbours, rankings and their metrics."""
