"""The games, one package each, always with the same file names."""
