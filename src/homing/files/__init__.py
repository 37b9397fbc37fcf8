"""Files that people keep their text in (txt, md, pdf, docx, xlsx, epub), as text."""

from homing.files.file_text import FileText, Part
from homing.files.formats import SUFFIXES, TEXT_SUFFIXES
from homing.files.limits import Limits
from homing.files.reading import read_file

__all__ = ["SUFFIXES", "TEXT_SUFFIXES", "FileText", "Limits", "Part", "read_file"]
