"""Rows in transactions: the seam, and one driver for each engine."""

from homing.database.database import Database, Row, Step, Transaction, entered

__all__ = ["Database", "Row", "Step", "Transaction", "entered"]
