"""Embeds in the background: a durable queue in the shared database, and the workers that empty it."""
