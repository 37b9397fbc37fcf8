// Written by tools/typescript.py from the schemas of the channels; `homing ipc schema` prints those.
import type { Shape } from "./check.ts";

/** The version of the protocol that these types belong to. */
export const PROTOCOL_VERSION = 1;

/** A paragraph: `text` is what stands between the two offsets. `embedding` is there where it was asked for. */
export interface ChunkEntry {
  id: string;
  documentId: string;
  projectId: string;
  text: string;
  embedding: number[] | null;
  startOffset: number;
  endOffset: number;
  /** Milliseconds since 1970, as Date.now() counts. */
  updatedAt: number;
  pending: boolean;
}

/** A document, and how its paragraphs are to be told. */
export interface DocumentChunksRequest {
  projectId: string;
  documentId: string;
  /** Default: false. */
  includeEmbedding?: boolean;
  /** What offsets count: characters, or UTF-16 units as in a JavaScript string. Default: "characters". */
  offsetUnit?: "characters" | "utf-16";
}

/** The paragraphs of a document, in order. */
export interface DocumentChunksResponse {
  chunks: ChunkEntry[];
}

/** A document of a project. */
export interface DocumentDeleteRequest {
  projectId: string;
  documentId: string;
}

/** What became of it. */
export interface DocumentDeleteResponse {
  /** Whether there was one. */
  deleted: boolean;
}

/** A document without its text. */
export interface DocumentEntry {
  documentId: string;
  projectId: string;
  characters: number;
  chunks: number;
  pending: number;
  /** Milliseconds since 1970, as Date.now() counts. */
  updatedAt: number;
  /** A text that was saved, an uploaded file, or a file of a followed folder. */
  kind: "text" | "upload" | "file";
  /** Of an uploaded file. */
  format: string;
}

/** A page of the documents of a project. */
export interface DocumentListRequest {
  projectId: string;
  /** Default: 10000. */
  limit?: number;
  /** Default: 0. */
  offset?: number;
}

/** The documents of a project, by name. */
export interface DocumentListResponse {
  documents: DocumentEntry[];
}

/** The project that a document goes to. */
export interface DocumentMoveRequest {
  projectId: string;
  documentId: string;
  toProjectId: string;
}

/** Where a document is now. */
export interface DocumentMoveResponse {
  projectId: string;
  documentId: string;
}

/** The new name of a document. */
export interface DocumentRenameRequest {
  projectId: string;
  documentId: string;
  newDocumentId: string;
}

/** Where a document is now. */
export interface DocumentRenameResponse {
  projectId: string;
  documentId: string;
}

/** The text of a document, whole. */
export interface DocumentSaveRequest {
  projectId: string;
  documentId: string;
  text: string;
}

/** What a save did to the paragraphs, as chunk ids; only `changed` ones are embedded. */
export interface DocumentSaveResponse {
  changed: string[];
  unchanged: string[];
  moved: string[];
  removed: string[];
}

/** A document of a project. */
export interface DocumentTextRequest {
  projectId: string;
  documentId: string;
}

/** The text, as it was saved. */
export interface DocumentTextResponse {
  text: string;
}

/** Texts to embed. */
export interface EmbeddingGenerateRequest {
  texts: string[];
  /** `default`, or the name of a model that is configured. Default: "default". */
  model?: string;
  /** Whether the texts are searched, or are what is asked. Default: "document". */
  kind?: "document" | "query";
  /** The width that is expected; another one is EMBEDDING_DIMENSION_MISMATCH. Default: null. */
  dimensions?: number | null;
}

/** One vector of length 1 for each text, in order. */
export interface EmbeddingGenerateResponse {
  /** What made them: provider/model@dimensions. */
  model: string;
  dimensions: number;
  embeddings: number[][];
}

/** What to look through: a document, a project, or everything. */
export interface EmbeddingReindexRequest {
  /** null: every project. Default: null. */
  projectId?: string | null;
  /** null: every document of the project. Default: null. */
  documentId?: string | null;
  /** How many paragraphs are embedded at once. Default: 128. */
  batchSize?: number;
}

/** What a reindex did: chunks that got a vector, damaged ones among them, entries of no chunk, and what waits. */
export interface EmbeddingReindexResponse {
  documents: number;
  chunks: number;
  embedded: number;
  repaired: number;
  removed: number;
  pending: number;
  canceled: boolean;
}

/** A text, and how to look for the paragraphs that it is about. */
export interface EmbeddingSearchRequest {
  projectId: string;
  query: string;
  /** `hybrid`: words have a say beside the meaning. Default: "semantic". */
  mode?: "semantic" | "hybrid";
  /** How many at most. Default: 20. */
  topK?: number;
  /** Paragraphs whose meaning scores less are left out. Default: 0.55. */
  minScore?: number;
  /** What offsets count: characters, or UTF-16 units as in a JavaScript string. Default: "characters". */
  offsetUnit?: "characters" | "utf-16";
}

/** The paragraphs, best first. */
export interface EmbeddingSearchResponse {
  mode: "semantic" | "hybrid" | "fts-fallback";
  /** Why words answered in place of the meaning; null where they did not. */
  fallback: Fallback | null;
  results: EmbeddingSearchResult[];
  tookMs: number;
}

/** A paragraph that was found. */
export interface EmbeddingSearchResult {
  chunkId: string;
  documentId: string;
  projectId: string;
  text: string;
  startOffset: number;
  endOffset: number;
  /** Whether it still waits for its embedding; words find it until then. */
  pending: boolean;
  /** How near in meaning, 0 to 1; null where only words found it. */
  score: number | null;
}

/** What to report on, and for how long to wait until there is nothing more to do. */
export interface EmbeddingStatusRequest {
  /** null: every project. Default: null. */
  projectId?: string | null;
  /** How long to wait for the last paragraph to be embedded. Default: 0. */
  waitMs?: number;
}

/** How far the background is. */
export interface EmbeddingStatusResponse {
  /** provider/model@dimensions of the default; null where there is none. */
  model: string | null;
  dimensions: number | null;
  /** Why there is none; whether it answers is told by what asks it. */
  problem: ModelProblem | null;
  /** How many paragraphs wait for their embedding. */
  pending: number;
}

/** Why an answer is not what was asked for, for a program and for a person. */
export interface Fallback {
  /** A stable code, such as `vector:MODEL_NOT_READY`. */
  reason: string;
  /** What to show, in Chinese. */
  notice: string;
  /** The same in English. */
  noticeEn: string;
}

/** A place in a text: `text.slice(start, end)`. */
export interface Highlight {
  start: number;
  end: number;
}

/** Why there is no model, and what to do. */
export interface ModelProblem {
  code: string;
  message: string;
}

/** A project. */
export interface ProjectDeleteRequest {
  projectId: string;
}

/** How many documents the project had. */
export interface ProjectDeleteResponse {
  documents: number;
}

/** A project; `pending` chunks wait for their vector and are found by their words. `follows` is the folder whose files are its documents; empty for most. */
export interface ProjectEntry {
  projectId: string;
  documents: number;
  chunks: number;
  pending: number;
  follows: string;
}

/** Nothing to choose. */
export type ProjectListRequest = Record<string, never>;

/** The projects, by name. */
export interface ProjectListResponse {
  projects: ProjectEntry[];
}

/** A paragraph for the Retrieved layer. */
export interface RagChunk {
  chunkId: string;
  documentId: string;
  text: string;
  /** How near in meaning, 0 to 1; null where only words found it. */
  score: number | null;
  tokenEstimate: number;
}

/** Nothing to choose. */
export type RagConfigGetRequest = Record<string, never>;

/** The defaults of `rag:retrieve`. */
export interface RagConfigGetResponse {
  /** How many paragraphs at most. Default: 5. */
  topK: number;
  /** Paragraphs that score less are left out. Default: 0.7. */
  minScore: number;
  /** What they may cost a language model together. Default: 1500. */
  maxTokens: number;
}

/** What is to change; what is null or not sent stays as it is. */
export interface RagConfigUpdateRequest {
  /** Default: null. */
  topK?: number | null;
  /** Default: null. */
  minScore?: number | null;
  /** Default: null. */
  maxTokens?: number | null;
}

/** The defaults of `rag:retrieve`. */
export interface RagConfigUpdateResponse {
  /** How many paragraphs at most. Default: 5. */
  topK: number;
  /** Paragraphs that score less are left out. Default: 0.7. */
  minScore: number;
  /** What they may cost a language model together. Default: 1500. */
  maxTokens: number;
}

/** What is being written. What is not sent is as `rag:config:get` tells it. */
export interface RagRetrieveRequest {
  projectId: string;
  query: string;
  /** How many paragraphs at most. Default: 5. */
  topK?: number;
  /** Paragraphs that score less are left out. Default: 0.7. */
  minScore?: number;
  /** What they may cost a language model together. Default: 1500. */
  maxTokens?: number;
}

/** The paragraphs, nearest first, within the budget. Nothing found is an empty list, never an error. */
export interface RagRetrieveResponse {
  mode: "semantic" | "fts-fallback";
  /** Why words answered in place of the meaning; null where they did not. */
  fallback: Fallback | null;
  chunks: RagChunk[];
  usedTokens: number;
  /** Whether the budget left something out. */
  truncated: boolean;
}

/** Words to find; a phrase in quotes is found as it stands. */
export interface SearchFtsQueryRequest {
  projectId: string;
  query: string;
  /** How many at most. Default: 20. */
  limit?: number;
  /** How many to pass over: the next page. Default: 0. */
  offset?: number;
  /** What offsets count: characters, or UTF-16 units as in a JavaScript string. Default: "characters". */
  offsetUnit?: "characters" | "utf-16";
}

/** The paragraphs, best first. */
export interface SearchFtsQueryResponse {
  results: SearchFtsResult[];
  /** Default: "fts". */
  mode: "fts";
  /** Whether a next page has something on it. */
  hasMore: boolean;
  tookMs: number;
}

/** A paragraph with a piece of it to show. */
export interface SearchFtsResult {
  chunkId: string;
  documentId: string;
  projectId: string;
  text: string;
  startOffset: number;
  endOffset: number;
  /** Whether it still waits for its embedding; words find it until then. */
  pending: boolean;
  /** About 120 characters around the first word that was found, on one line. */
  snippet: string;
  /** Where the words stand in the snippet. */
  snippetHighlights: Highlight[];
  /** Where the words stand in the document. */
  highlights: Highlight[];
}

/** Stable; programs may rely on it. */
export type ErrorCode = "BACKPRESSURE" | "CANCELED" | "CONFIG_INVALID" | "CONFLICT" | "EMBEDDING_DIMENSION_MISMATCH" | "EMBEDDING_FAILED" | "INTERNAL" | "INVALID_ARGUMENT" | "INVALID_KEY" | "LANCE_SEARCH_ERROR" | "MALFORMED_ANSWER" | "MISSING_EXTRA" | "MODEL_MISMATCH" | "MODEL_NOT_READY" | "MODEL_UNKNOWN" | "NOT_FOUND" | "OVERLOADED" | "PROVIDER_UNAVAILABLE" | "RATE_LIMITED" | "RETRIEVAL_FAILED" | "STORE_BUSY" | "STORE_CLOSED" | "STORE_CORRUPT" | "STORE_ERROR" | "STORE_READ_ONLY" | "STORE_TOO_NEW" | "STORE_TOO_OLD" | "STORE_UNAVAILABLE" | "TEXT_TOO_LONG" | "TIMEOUT" | "UNKNOWN_PROVIDER";

/** Why a request could not be served. */
export interface ChannelError {
  code: ErrorCode;
  /** What failed, on what, and what to do next. */
  message: string;
  /** Plain data for programs. */
  details: Record<string, unknown>;
}

/** Every channel with what it takes and what it gives. */
export interface Channels {
  /** List the projects. */
  "project:list": { request: ProjectListRequest; response: ProjectListResponse };
  /** List the documents of a project. A project that does not exist has none. */
  "document:list": { request: DocumentListRequest; response: DocumentListResponse };
  /** Delete a project with everything in it. */
  "project:delete": { request: ProjectDeleteRequest; response: ProjectDeleteResponse };
  /** Find paragraphs whose vector is missing, out of date or damaged, and embed them again, in a job. */
  "embedding:reindex": { request: EmbeddingReindexRequest; response: EmbeddingReindexResponse };
  /** List the paragraphs of a document, and which of them are waiting for their vector. */
  "document:chunks": { request: DocumentChunksRequest; response: DocumentChunksResponse };
  /** Give a document another name. Its paragraphs keep their ids, and nothing is embedded again. */
  "document:rename": { request: DocumentRenameRequest; response: DocumentRenameResponse };
  /** Move a document to another project. Its paragraphs keep their ids, and nothing is embedded again. */
  "document:move": { request: DocumentMoveRequest; response: DocumentMoveResponse };
  /** Save a document. It is on disk and found by its words when this answers; new paragraphs are embedded after. */
  "document:save": { request: DocumentSaveRequest; response: DocumentSaveResponse };
  /** Turn texts into vectors. */
  "embedding:generate": { request: EmbeddingGenerateRequest; response: EmbeddingGenerateResponse };
  /** Find the paragraphs of a project that a text is about; by words where the model does not answer. */
  "embedding:search": { request: EmbeddingSearchRequest; response: EmbeddingSearchResponse };
  /** Tell which model is in use and how many texts are waiting for it, at once or when none is left. */
  "embedding:status": { request: EmbeddingStatusRequest; response: EmbeddingStatusResponse };
  /** Find the paragraphs of a project that hold words, a page at a time. */
  "search:fts:query": { request: SearchFtsQueryRequest; response: SearchFtsQueryResponse };
  /** Retrieve what a language model should know. What is not sent is as `rag:config:get` tells it. */
  "rag:retrieve": { request: RagRetrieveRequest; response: RagRetrieveResponse };
  /** Show the defaults of `rag:retrieve`. */
  "rag:config:get": { request: RagConfigGetRequest; response: RagConfigGetResponse };
  /** Change a part of the configuration, and keep it; what is null or not sent stays as it is. */
  "rag:config:update": { request: RagConfigUpdateRequest; response: RagConfigUpdateResponse };
  /** Get the text of a document, exactly as it was saved. */
  "document:text": { request: DocumentTextRequest; response: DocumentTextResponse };
  /** Delete a document with its paragraphs and vectors. Deleting what is not there is fine. */
  "document:delete": { request: DocumentDeleteRequest; response: DocumentDeleteResponse };
}

export type ChannelName = keyof Channels;

/** The channels that tell places in a text, and can count them as JavaScript does. */
export const CHANNELS_WITH_OFFSETS = [
  "document:chunks",
  "embedding:search",
  "search:fts:query",
] as const satisfies readonly ChannelName[];

/** The shape of what each channel answers with, by its name in `SHAPES`. */
export const RESPONSES: Readonly<Record<ChannelName, string>> = {
  "project:list": "ProjectListResponse",
  "document:list": "DocumentListResponse",
  "project:delete": "ProjectDeleteResponse",
  "embedding:reindex": "EmbeddingReindexResponse",
  "document:chunks": "DocumentChunksResponse",
  "document:rename": "DocumentRenameResponse",
  "document:move": "DocumentMoveResponse",
  "document:save": "DocumentSaveResponse",
  "embedding:generate": "EmbeddingGenerateResponse",
  "embedding:search": "EmbeddingSearchResponse",
  "embedding:status": "EmbeddingStatusResponse",
  "search:fts:query": "SearchFtsQueryResponse",
  "rag:retrieve": "RagRetrieveResponse",
  "rag:config:get": "RagConfigGetResponse",
  "rag:config:update": "RagConfigUpdateResponse",
  "document:text": "DocumentTextResponse",
  "document:delete": "DocumentDeleteResponse",
};

/** What arrives, for the check at run time. */
export const SHAPES: Readonly<Record<string, Shape>> = {
  ChannelError: {"type": "object", "required": ["code", "message", "details"], "properties": {"code": {"$ref": "ErrorCode"}, "message": {"type": "string"}, "details": {"type": "object"}}},
  ChunkEntry: {"type": "object", "required": ["id", "documentId", "projectId", "text", "embedding", "startOffset", "endOffset", "updatedAt", "pending"], "properties": {"id": {"type": "string"}, "documentId": {"type": "string"}, "projectId": {"type": "string"}, "text": {"type": "string"}, "embedding": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]}, "startOffset": {"type": "integer"}, "endOffset": {"type": "integer"}, "updatedAt": {"type": "integer"}, "pending": {"type": "boolean"}}},
  DocumentChunksResponse: {"type": "object", "required": ["chunks"], "properties": {"chunks": {"type": "array", "items": {"$ref": "ChunkEntry"}}}},
  DocumentDeleteResponse: {"type": "object", "required": ["deleted"], "properties": {"deleted": {"type": "boolean"}}},
  DocumentEntry: {"type": "object", "required": ["documentId", "projectId", "characters", "chunks", "pending", "updatedAt", "kind", "format"], "properties": {"documentId": {"type": "string"}, "projectId": {"type": "string"}, "characters": {"type": "integer"}, "chunks": {"type": "integer"}, "pending": {"type": "integer"}, "updatedAt": {"type": "integer"}, "kind": {"type": "string", "enum": ["text", "upload", "file"]}, "format": {"type": "string"}}},
  DocumentListResponse: {"type": "object", "required": ["documents"], "properties": {"documents": {"type": "array", "items": {"$ref": "DocumentEntry"}}}},
  DocumentMoveResponse: {"type": "object", "required": ["projectId", "documentId"], "properties": {"projectId": {"type": "string"}, "documentId": {"type": "string"}}},
  DocumentRenameResponse: {"type": "object", "required": ["projectId", "documentId"], "properties": {"projectId": {"type": "string"}, "documentId": {"type": "string"}}},
  DocumentSaveResponse: {"type": "object", "required": ["changed", "unchanged", "moved", "removed"], "properties": {"changed": {"type": "array", "items": {"type": "string"}}, "unchanged": {"type": "array", "items": {"type": "string"}}, "moved": {"type": "array", "items": {"type": "string"}}, "removed": {"type": "array", "items": {"type": "string"}}}},
  DocumentTextResponse: {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  EmbeddingGenerateResponse: {"type": "object", "required": ["model", "dimensions", "embeddings"], "properties": {"model": {"type": "string"}, "dimensions": {"type": "integer"}, "embeddings": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}},
  EmbeddingReindexResponse: {"type": "object", "required": ["documents", "chunks", "embedded", "repaired", "removed", "pending", "canceled"], "properties": {"documents": {"type": "integer"}, "chunks": {"type": "integer"}, "embedded": {"type": "integer"}, "repaired": {"type": "integer"}, "removed": {"type": "integer"}, "pending": {"type": "integer"}, "canceled": {"type": "boolean"}}},
  EmbeddingSearchResponse: {"type": "object", "required": ["mode", "fallback", "results", "tookMs"], "properties": {"mode": {"type": "string", "enum": ["semantic", "hybrid", "fts-fallback"]}, "fallback": {"anyOf": [{"$ref": "Fallback"}, {"type": "null"}]}, "results": {"type": "array", "items": {"$ref": "EmbeddingSearchResult"}}, "tookMs": {"type": "number"}}},
  EmbeddingSearchResult: {"type": "object", "required": ["chunkId", "documentId", "projectId", "text", "startOffset", "endOffset", "pending", "score"], "properties": {"chunkId": {"type": "string"}, "documentId": {"type": "string"}, "projectId": {"type": "string"}, "text": {"type": "string"}, "startOffset": {"type": "integer"}, "endOffset": {"type": "integer"}, "pending": {"type": "boolean"}, "score": {"anyOf": [{"type": "number"}, {"type": "null"}]}}},
  EmbeddingStatusResponse: {"type": "object", "required": ["model", "dimensions", "problem", "pending"], "properties": {"model": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "dimensions": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "problem": {"anyOf": [{"$ref": "ModelProblem"}, {"type": "null"}]}, "pending": {"type": "integer"}}},
  ErrorCode: {"type": "string"},
  Fallback: {"type": "object", "required": ["reason", "notice", "noticeEn"], "properties": {"reason": {"type": "string"}, "notice": {"type": "string"}, "noticeEn": {"type": "string"}}},
  Highlight: {"type": "object", "required": ["start", "end"], "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}}},
  ModelProblem: {"type": "object", "required": ["code", "message"], "properties": {"code": {"type": "string"}, "message": {"type": "string"}}},
  ProjectDeleteResponse: {"type": "object", "required": ["documents"], "properties": {"documents": {"type": "integer"}}},
  ProjectEntry: {"type": "object", "required": ["projectId", "documents", "chunks", "pending", "follows"], "properties": {"projectId": {"type": "string"}, "documents": {"type": "integer"}, "chunks": {"type": "integer"}, "pending": {"type": "integer"}, "follows": {"type": "string"}}},
  ProjectListResponse: {"type": "object", "required": ["projects"], "properties": {"projects": {"type": "array", "items": {"$ref": "ProjectEntry"}}}},
  RagChunk: {"type": "object", "required": ["chunkId", "documentId", "text", "score", "tokenEstimate"], "properties": {"chunkId": {"type": "string"}, "documentId": {"type": "string"}, "text": {"type": "string"}, "score": {"anyOf": [{"type": "number"}, {"type": "null"}]}, "tokenEstimate": {"type": "integer"}}},
  RagConfigGetResponse: {"type": "object", "required": ["topK", "minScore", "maxTokens"], "properties": {"topK": {"type": "integer"}, "minScore": {"type": "number"}, "maxTokens": {"type": "integer"}}},
  RagConfigUpdateResponse: {"type": "object", "required": ["topK", "minScore", "maxTokens"], "properties": {"topK": {"type": "integer"}, "minScore": {"type": "number"}, "maxTokens": {"type": "integer"}}},
  RagRetrieveResponse: {"type": "object", "required": ["mode", "fallback", "chunks", "usedTokens", "truncated"], "properties": {"mode": {"type": "string", "enum": ["semantic", "fts-fallback"]}, "fallback": {"anyOf": [{"$ref": "Fallback"}, {"type": "null"}]}, "chunks": {"type": "array", "items": {"$ref": "RagChunk"}}, "usedTokens": {"type": "integer"}, "truncated": {"type": "boolean"}}},
  SearchFtsQueryResponse: {"type": "object", "required": ["results", "mode", "hasMore", "tookMs"], "properties": {"results": {"type": "array", "items": {"$ref": "SearchFtsResult"}}, "mode": {"type": "string", "const": "fts"}, "hasMore": {"type": "boolean"}, "tookMs": {"type": "number"}}},
  SearchFtsResult: {"type": "object", "required": ["chunkId", "documentId", "projectId", "text", "startOffset", "endOffset", "pending", "snippet", "snippetHighlights", "highlights"], "properties": {"chunkId": {"type": "string"}, "documentId": {"type": "string"}, "projectId": {"type": "string"}, "text": {"type": "string"}, "startOffset": {"type": "integer"}, "endOffset": {"type": "integer"}, "pending": {"type": "boolean"}, "snippet": {"type": "string"}, "snippetHighlights": {"type": "array", "items": {"$ref": "Highlight"}}, "highlights": {"type": "array", "items": {"$ref": "Highlight"}}}},
};
