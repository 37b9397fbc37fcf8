"""Remember, recall across collections, add what was recalled to a prompt."""

from homing.memory.adapter import ContextAwareModelAdapter
from homing.memory.content import Entry, KnowledgeStore, LearningStore, MemoryStore
from homing.memory.embedding_buffer import BufferOptions, EmbeddingBuffer, EmbedRequest
from homing.memory.service import Memory, RAGService, RetrieveOptions

__all__ = [
    "BufferOptions",
    "ContextAwareModelAdapter",
    "EmbedRequest",
    "EmbeddingBuffer",
    "Entry",
    "KnowledgeStore",
    "LearningStore",
    "Memory",
    "MemoryStore",
    "RAGService",
    "RetrieveOptions",
]
