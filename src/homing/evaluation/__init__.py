"""Measures retrieval on questions whose answers are known."""
