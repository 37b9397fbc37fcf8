"""One retrieval engine for agents and apps, bilingual (Chinese and English) and offline by default."""
