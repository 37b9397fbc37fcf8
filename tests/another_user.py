"""For tests that go on as another user: only root can become one, who must be able to read what is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import apsw
import pytest

NOBODY = 65534
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def _can_read_what_is_installed() -> bool:
    place = Path(apsw.__file__)
    return subprocess.run(["test", "-r", place], user=NOBODY, group=NOBODY, extra_groups=[]).returncode == 0


SHUT_OUT = IS_ROOT and not _can_read_what_is_installed()
"""Whether this is root, in a folder where nobody else can read the packages."""
not_shut_out = pytest.mark.skipif(SHUT_OUT, reason="no other user can read what is installed here")
by_root = pytest.mark.skipif(not IS_ROOT or SHUT_OUT, reason="only root can become another user, one who can read this")
