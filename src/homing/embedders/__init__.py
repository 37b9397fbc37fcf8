"""Text becomes vectors: the provider protocol, one file per provider, and the wrappers around any of them."""
