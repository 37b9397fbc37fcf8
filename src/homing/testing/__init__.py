"""Shipped for people who write a provider or a store: contract suites to subclass, and a fake embedder."""
