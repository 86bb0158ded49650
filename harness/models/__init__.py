"""Every model that can play: one table from a name to what answers for it."""
