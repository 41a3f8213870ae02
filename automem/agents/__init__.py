"""Agents that can play: each a short file, chosen by name, compared on the same seeds."""
