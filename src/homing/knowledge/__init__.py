"""A knowledge base for each user: files in, the passages that a question is about out."""

from homing.knowledge.chunks import Chunk, chunks
from homing.knowledge.kept_file import FileInfo
from homing.knowledge.knowledge_base import KnowledgeBase, Uploaded
from homing.knowledge.prompt import prompt_block
from homing.knowledge.shelf import CHUNKS

__all__ = ["CHUNKS", "Chunk", "FileInfo", "KnowledgeBase", "Uploaded", "chunks", "prompt_block"]
