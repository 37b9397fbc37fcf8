"""Bulk loading: many rows from files or object storage, embedded on many cores or machines, into one collection."""

from homing.bulk.loading import BulkLoaded, load
from homing.bulk.rows import Source
from homing.bulk.workers import ProcessWorkers, RayWorkers, Workers

__all__ = ["BulkLoaded", "ProcessWorkers", "RayWorkers", "Source", "Workers", "load"]
