"""The channels for a program that started us: JSON-RPC 2.0 on standard input and output."""
