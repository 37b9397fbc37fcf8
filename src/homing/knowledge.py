"""A knowledge base for each user: files in, the passages that a question is about out. See `homing.documents`."""

from homing.documents.knowledge_base import KnowledgeBase
from homing.documents.prompt import prompt_block
from homing.documents.records import COLLECTION as CHUNKS
from homing.documents.uploading import FileInfo, Uploaded

__all__ = ["CHUNKS", "FileInfo", "KnowledgeBase", "Uploaded", "prompt_block"]
