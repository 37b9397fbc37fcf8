"""Records are kept and found again: the store protocol and one file per engine."""
