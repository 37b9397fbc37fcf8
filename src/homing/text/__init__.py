"""Text as search sees it: bilingual tokens, paragraphs with offsets, a token budget."""
