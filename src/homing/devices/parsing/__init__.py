"""From a sentence to QueryIRs: tokens, clauses and what is meant by them, phrases; by rules, or by a chat model."""
