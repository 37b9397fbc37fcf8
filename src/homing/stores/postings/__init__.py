"""The keyword index: exact BM25 over immutable segments, the same in every store that can keep rows."""
