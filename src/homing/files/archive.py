"""The zip archives that docx, xlsx and epub files are, opened without trusting them."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from xml.parsers import expat

from homing.errors import FileDamaged, FileEncrypted, FileTooLarge, FileUnsafe, HomingError
from homing.files.file_text import MIB, Counter, Limits

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_HELD = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm")
BEGINNING = 64 * 1024
"""Bytes of a member within which its first element begins, in an honest file."""
# Sheets are read row by row, and may be larger than what is held in memory.
_STREAMED = "xl/worksheets/"


class Archive:
    """The members of an archive. What it declares is checked before anything is unpacked.

    Python's zipfile never hands out more bytes of a member than the archive declares for it, so the sum of what is
    declared is the most that a bomb can unpack to.
    """

    def __init__(self, content: bytes, filename: str, limits: Limits) -> None:
        self.filename, self.limits = filename, limits
        if content.startswith(_OLE):
            raise FileEncrypted(
                f"{filename} has a password, or is of an older format; save it without one, in the current format",
                details={"filename": filename},
            )
        with damaged(filename):
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        self._check_sizes()

    @property
    def names(self) -> list[str]:
        """Every member."""
        return self._zip.namelist()

    def read(self, name: str) -> bytes:
        """The bytes of a member. Raises FileDamaged where it is missing or broken."""
        with damaged(self.filename):
            return self._zip.read(name)

    def refuse_entities(self) -> None:
        """Look at the beginning of every XML member for declarations that could expand. Raises FileUnsafe."""
        for name in self.names:
            beginning = self._beginning(name)
            # By how it begins, not by its name: a library reads what another member tells it to.
            if beginning.startswith(_MARKS) or beginning.lstrip()[:1] == b"<":
                refuse_entities(beginning, name, self.filename)

    def _beginning(self, name: str) -> bytes:
        with damaged(self.filename), self._zip.open(name) as member:
            return member.read(BEGINNING)

    def _check_sizes(self) -> None:
        Counter(self.filename, "members", self.limits.members).add(len(self.names))
        unpacked = Counter(self.filename, "bytes when unpacked", self.limits.unpacked)
        for one in self._zip.infolist():
            if one.flag_bits & 0x1:
                raise FileEncrypted(f"{self.filename} has a password; save it without one")
            unpacked.add(one.file_size)
            held = one.filename.lower().endswith(_HELD) and not one.filename.startswith(_STREAMED)
            if held and one.file_size > self.limits.member:
                raise FileTooLarge(
                    f"{self.filename} holds {one.filename} of {one.file_size / MIB:.0f} MiB; split the file",
                    details={"limit": self.limits.member, "of": "bytes of one member"},
                )


class _Begun(Exception):
    """The first element of a document: nothing can be declared behind it."""


def refuse_entities(content: bytes, name: str, filename: str) -> None:
    """Raises FileUnsafe where a document declares anything of its own, such as entities that expand into billions."""

    def declared(doctype: str, system: str | None, public: str | None, has_internal_subset: bool) -> None:
        if has_internal_subset:
            raise FileUnsafe(
                f"{filename}: {name} declares XML entities, which no program writes for an honest file",
                details={"filename": filename, "member": name},
            )

    def begun(tag: str, attributes: dict[str, str]) -> None:
        raise _Begun

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    parser.StartElementHandler = begun
    try:
        parser.Parse(content, True)
    except _Begun:
        return
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise FileDamaged(f"{filename}: {name} is not XML: {error}", details={"filename": filename}) from error


@contextmanager
def damaged(filename: str) -> Iterator[None]:
    """Whatever a library raises over a broken file is told as FileDamaged; our own errors pass."""
    try:
        yield
    except (HomingError, MemoryError):
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise FileDamaged(
            f"{filename} is damaged ({error}); was it copied completely?", details={"filename": filename}
        ) from error
    # The libraries promise no error of their own: a broken file ends in whatever its bytes led them to.
    except Exception as error:
        raise FileDamaged(
            f"{filename} cannot be read ({type(error).__name__}: {error}); open it in its program and save it again",
            details={"filename": filename},
        ) from error
