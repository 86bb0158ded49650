"""Lets models play agentgym's games, and records, scores and reports what they did."""
