"""Files that would take a machine for themselves: each ends within its budget, and nothing of it stays behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from homing.errors import Canceled, FileTooCostly, FileUnreadable
from homing.errors_zh import in_chinese
from homing.files import Limits, read_file
from tests.files.bombs import BOMBS, COSTLY, one_sheet_under_many_names, same_page_thousands_of_times
from tests.files.made_files import make_docx, make_epub, make_pdf, make_xlsx, page

pytestmark = pytest.mark.slow

SMALL = Limits(cpu_seconds=1, memory=96 * 1024 * 1024)
BOMB = same_page_thousands_of_times()


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_within_its_budget_with_its_code(name: str) -> None:
    made, codes = BOMBS[name]
    content = made()
    assert len(content) < 2_000_000
    try:
        read_file(content, name, limits=SMALL)
        code = ""
    except FileUnreadable as error:
        code = error.code
    assert code in codes


def test_each_budget_is_named_with_its_setting_in_both_languages() -> None:
    with pytest.raises(FileTooCostly, match=r"1 s of processor time \(files\.cpu_seconds\)") as raised:
        read_file(BOMB, "书.pdf", limits=SMALL)
    assert raised.value.details["of"] == "cpu"
    with pytest.raises(FileTooCostly, match=r"files\.seconds") as raised:
        read_file(BOMB, "书.pdf", limits=Limits(seconds=0.3))
    assert raised.value.details["of"] == "time"
    with pytest.raises(FileTooCostly, match=r"96 MiB of memory \(files\.memory\)") as raised:
        read_file(BOMBS["paragraphs.docx"][0](), "书.docx", limits=SMALL)
    assert raised.value.details["of"] == "memory"
    assert "内存" in in_chinese(COSTLY)


def test_what_nobody_waits_for_is_killed_and_the_next_file_is_read() -> None:
    asked = []

    def gone() -> bool:
        asked.append(len(readers()))
        return len(asked) > 3

    with pytest.raises(Canceled):
        read_file(BOMB, "a.pdf", canceled=gone)
    assert max(asked) == 1
    assert not readers()
    assert read_file(make_pdf(["灯塔 lamp"]), "b.pdf").text == "灯塔 lamp"


def test_many_threads_read_at_once_each_their_own_file() -> None:
    files = {
        "a.pdf": make_pdf(["灯塔 lamp"]), "a.docx": make_docx("灯塔 lamp"),
        "a.xlsx": make_xlsx({"S": [["灯塔 lamp"]]}), "a.epub": make_epub({"a.xhtml": page("<p>灯塔 lamp</p>")}),
    }  # fmt: skip
    read: dict[str, str] = {}

    def work(name: str, number: int) -> None:
        read[f"{number}{name}"] = read_file(files[name], name).text

    threads = [threading.Thread(target=work, args=(name, at)) for name in files for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 12
    assert all("灯塔 lamp" in text for text in read.values())


def test_a_helper_that_was_killed_is_started_again() -> None:
    read_file(make_docx("灯塔"), "a.docx")
    (helper,) = helpers()
    os.kill(helper, 9)
    assert read_file(make_docx("灯塔"), "a.docx").text == "灯塔"
    assert helpers() not in ([], [helper])


def test_the_reader_has_none_of_our_variables_and_ends_with_us(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from homing.files import read_file\n"
        "from tests.files.made_files import make_docx\n"
        "from tests.files.test_bombs import children\n"
        "read_file(make_docx('x'), 'a.docx')\n"
        "(helper,) = children(os.getpid())\n"
        "print(helper, 'PLANTED' in open(f'/proc/{helper}/environ').read(), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environ = {**os.environ, "PLANTED": "secret"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False)
    helper, planted = done.stdout.split()
    assert planted == "False"
    while alive(int(helper)):
        time.sleep(0.01)


def test_a_system_that_cannot_fork_has_a_time_budget_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert read_file(make_pdf(["灯塔 lamp"]), "b.pdf").text == "灯塔 lamp"
    with pytest.raises(FileTooCostly) as raised:
        read_file(one_sheet_under_many_names(), "a.xlsx", limits=Limits(seconds=0.5))
    assert raised.value.details["of"] == "time"


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return found


def helpers() -> list[int]:
    """Those of our children that start readers; a browser that other tests share has children, too."""
    found: list[int] = []
    for one in children(os.getpid()):
        with contextlib.suppress(OSError):
            found += [one] if b"homing.files" in Path(f"/proc/{one}/cmdline").read_bytes() else []
    return found


def readers() -> list[int]:
    """The processes that read a file now."""
    return [reader for helper in helpers() for reader in children(helper)]
