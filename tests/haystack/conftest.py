"""Haystack tells its makers who uses it, unless it is told not to before it is imported."""

from __future__ import annotations

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
