"""Documents that can be searched while they are being written: found by words at once, embedded by paragraph."""

from homing.documents.folders import Imported, SkippedFile
from homing.documents.records import Chunk, DocumentInfo, ProjectInfo
from homing.documents.reindexing import Reindexed
from homing.documents.searching import Packed, PackedChunk, RagConfig
from homing.documents.service import DocumentService
from homing.documents.writing import Saved

__all__ = [
    "Chunk",
    "DocumentInfo",
    "DocumentService",
    "Imported",
    "Packed",
    "PackedChunk",
    "ProjectInfo",
    "RagConfig",
    "Reindexed",
    "Saved",
    "SkippedFile",
]
