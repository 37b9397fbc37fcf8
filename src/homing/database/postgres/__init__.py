"""Rows in PostgreSQL with psycopg 3: connections, transactions, migrations, errors, and a server to try it with."""
