"""Files that people keep their text in (txt, md, pdf, docx, xlsx, epub), as text."""

from homing.files.file_text import FileText, Limits, Part
from homing.files.reading import SUFFIXES, TEXT_SUFFIXES, read_file

__all__ = ["SUFFIXES", "TEXT_SUFFIXES", "FileText", "Limits", "Part", "read_file"]
