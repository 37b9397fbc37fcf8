"""Records in PostgreSQL with pgvector: for those who have outgrown one file or one machine."""
