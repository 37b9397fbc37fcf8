// Written by tools/typescript.py from the schemas of the channels; `homing ipc schema` prints those.

/** The version of the protocol that these types belong to. */
export const PROTOCOL_VERSION = 1;

/** A paragraph: `text` is `document.slice(startOffset, endOffset)`. */
export interface DocumentChunk {
  id: string;
  documentId: string;
  projectId: string;
  text: string;
  /** null while it is pending, or where it was not asked for. */
  embedding: number[] | null;
  startOffset: number;
  endOffset: number;
  /** Milliseconds since 1970, as Date.now() counts. */
  updatedAt: number;
  pending: boolean;
}

/** Ask for the paragraphs of a document. */
export interface DocumentChunksRequest {
  projectId: string;
  documentId: string;
  /** Default: false. */
  includeEmbedding?: boolean;
  /** What offsets count: characters, or UTF-16 units as in a JavaScript string. Default: "characters". */
  offsetUnit?: "characters" | "utf-16";
}

/** The paragraphs in the order of the text. */
export interface DocumentChunksResponse {
  chunks: DocumentChunk[];
}

/** Forget a document with its paragraphs and vectors. Deleting what is not there is fine. */
export interface DocumentDeleteRequest {
  projectId: string;
  documentId: string;
}

/** What became of it. */
export interface DocumentDeleteResponse {
  /** Whether there was one. */
  deleted: boolean;
}

/** A document. */
export interface DocumentEntry {
  documentId: string;
  projectId: string;
  characters: number;
  chunks: number;
  /** How many paragraphs wait for their embedding. */
  pending: number;
  /** Milliseconds since 1970, as Date.now() counts. */
  updatedAt: number;
}

/** Ask which documents a project has. */
export interface DocumentListRequest {
  projectId: string;
}

/** The documents by id. A project that does not exist has none. */
export interface DocumentListResponse {
  documents: DocumentEntry[];
}

/** Take a document to another project, under its name. Its chunks keep their ids; nothing is embedded again. */
export interface DocumentMoveRequest {
  projectId: string;
  documentId: string;
  toProjectId: string;
}

/** Where it is now. */
export interface DocumentMoveResponse {
  projectId: string;
  documentId: string;
}

/** Give a document another name. Its chunks keep their ids, and nothing is embedded again. */
export interface DocumentRenameRequest {
  projectId: string;
  documentId: string;
  newDocumentId: string;
}

/** Where it is now. */
export interface DocumentRenameResponse {
  projectId: string;
  documentId: string;
}

/** Keep a document as it is now; an editor sends this at every autosave. */
export interface DocumentSaveRequest {
  projectId: string;
  documentId: string;
  text: string;
}

/** What became of its paragraphs, as chunk ids. Only the changed ones are embedded, in the background. */
export interface DocumentSaveResponse {
  changed: string[];
  unchanged: string[];
  moved: string[];
  removed: string[];
}

/** Ask for the text of a document. */
export interface DocumentTextRequest {
  projectId: string;
  documentId: string;
}

/** The text, as it was saved. */
export interface DocumentTextResponse {
  text: string;
}

/** Turn texts into vectors. */
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

/** Bring the index in order: embed what has no vector, one of another model, or a damaged one. */
export interface EmbeddingReindexRequest {
  /** null: every project. Default: null. */
  projectId?: string | null;
  /** null: every document of the project. Default: null. */
  documentId?: string | null;
  /** How many paragraphs are embedded at once. Default: 128. */
  batchSize?: number;
}

/** What was done. */
export interface EmbeddingReindexResponse {
  documents: number;
  /** How many paragraphs were looked at. */
  chunks: number;
  /** How many of them had to be embedded. */
  embedded: number;
  /** How many of those because their vector was damaged. */
  repaired: number;
  /** How many entries of the index belonged to no paragraph. */
  removed: number;
  /** How many still have no vector, because the model did not answer. */
  pending: number;
}

/** Find the paragraphs of a project that a text is about. */
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
  results: EmbeddingSearchResult[];
  mode: "semantic" | "hybrid" | "fts-fallback";
  /** Why words answered in place of the meaning; null where they did not. */
  fallback: Fallback | null;
  tookMs: number;
}

/** A paragraph. */
export interface EmbeddingSearchResult {
  chunkId: string;
  documentId: string;
  projectId: string;
  text: string;
  /** How near in meaning, 0 to 1; null where only words found it. */
  score: number | null;
  startOffset: number;
  endOffset: number;
  /** Whether it still waits for its embedding; words find it until then. */
  pending: boolean;
}

/** Ask which model there is and how much waits for it. */
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

/** Forget a project with all its documents. */
export interface ProjectDeleteRequest {
  projectId: string;
}

/** What became of it. */
export interface ProjectDeleteResponse {
  /** How many documents it had. */
  documents: number;
}

/** A project. */
export interface ProjectEntry {
  projectId: string;
  documents: number;
  chunks: number;
  /** How many paragraphs wait for their embedding. */
  pending: number;
}

/** Ask which projects there are. */
export type ProjectListRequest = Record<string, never>;

/** The projects by id. */
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

/** Ask for the configuration. */
export type RagConfigGetRequest = Record<string, never>;

/** The configuration as it is. */
export interface RagConfigGetResponse {
  /** How many paragraphs at most. Default: 5. */
  topK?: number;
  /** Paragraphs that score less are left out. Default: 0.7. */
  minScore?: number;
  /** What they may cost a language model together. Default: 1500. */
  maxTokens?: number;
}

/** Change a part of the configuration; what is null or not sent stays as it is. */
export interface RagConfigUpdateRequest {
  /** Default: null. */
  topK?: number | null;
  /** Default: null. */
  minScore?: number | null;
  /** Default: null. */
  maxTokens?: number | null;
}

/** The configuration from now on. */
export interface RagConfigUpdateResponse {
  /** How many paragraphs at most. Default: 5. */
  topK?: number;
  /** Paragraphs that score less are left out. Default: 0.7. */
  minScore?: number;
  /** What they may cost a language model together. Default: 1500. */
  maxTokens?: number;
}

/** Retrieve what a language model should know. What is not sent is as `rag:config:get` tells it. */
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
  chunks: RagChunk[];
  usedTokens: number;
  /** Whether the budget left something out. */
  truncated: boolean;
  mode: "semantic" | "fts-fallback";
  /** Why words answered in place of the meaning; null where they did not. */
  fallback: Fallback | null;
}

/** Find the paragraphs of a project that hold words; a phrase in quotes is found as it stands. */
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
  mode?: "fts";
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
  /** About 120 characters around the first word that was found, on one line. */
  snippet: string;
  /** Where the words stand in the snippet. */
  snippetHighlights: Highlight[];
  /** Where the words stand in the document. */
  highlights: Highlight[];
  /** Whether it still waits for its embedding. */
  pending: boolean;
}

/** Stable; programs may rely on it. */
export type ErrorCode = "BACKPRESSURE" | "CANCELED" | "CONFIG_INVALID" | "EMBEDDING_DIMENSION_MISMATCH" | "EMBEDDING_FAILED" | "INTERNAL" | "INVALID_ARGUMENT" | "INVALID_KEY" | "LANCE_SEARCH_ERROR" | "MALFORMED_ANSWER" | "MISSING_EXTRA" | "MODEL_MISMATCH" | "MODEL_NOT_READY" | "MODEL_UNKNOWN" | "NOT_FOUND" | "PROVIDER_UNAVAILABLE" | "RATE_LIMITED" | "RETRIEVAL_FAILED" | "STORE_BUSY" | "STORE_CLOSED" | "STORE_CORRUPT" | "STORE_ERROR" | "STORE_READ_ONLY" | "STORE_TOO_NEW" | "STORE_TOO_OLD" | "STORE_UNAVAILABLE" | "TEXT_TOO_LONG" | "TIMEOUT" | "UNKNOWN_PROVIDER";

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
  /** Turn texts into vectors. */
  "embedding:generate": { request: EmbeddingGenerateRequest; response: EmbeddingGenerateResponse };
  /** Find the paragraphs of a project that a text is about. */
  "embedding:search": { request: EmbeddingSearchRequest; response: EmbeddingSearchResponse };
  /** Bring the index in order: embed what has no vector, one of another model, or a damaged one. */
  "embedding:reindex": { request: EmbeddingReindexRequest; response: EmbeddingReindexResponse };
  /** Ask which model there is and how much waits for it. */
  "embedding:status": { request: EmbeddingStatusRequest; response: EmbeddingStatusResponse };
  /** Find the paragraphs of a project that hold words; a phrase in quotes is found as it stands. */
  "search:fts:query": { request: SearchFtsQueryRequest; response: SearchFtsQueryResponse };
  /** Retrieve what a language model should know. What is not sent is as `rag:config:get` tells it. */
  "rag:retrieve": { request: RagRetrieveRequest; response: RagRetrieveResponse };
  /** Ask for the configuration. */
  "rag:config:get": { request: RagConfigGetRequest; response: RagConfigGetResponse };
  /** Change a part of the configuration; what is null or not sent stays as it is. */
  "rag:config:update": { request: RagConfigUpdateRequest; response: RagConfigUpdateResponse };
  /** Keep a document as it is now; an editor sends this at every autosave. */
  "document:save": { request: DocumentSaveRequest; response: DocumentSaveResponse };
  /** Forget a document with its paragraphs and vectors. Deleting what is not there is fine. */
  "document:delete": { request: DocumentDeleteRequest; response: DocumentDeleteResponse };
  /** Give a document another name. Its chunks keep their ids, and nothing is embedded again. */
  "document:rename": { request: DocumentRenameRequest; response: DocumentRenameResponse };
  /** Take a document to another project, under its name. Its chunks keep their ids; nothing is embedded again. */
  "document:move": { request: DocumentMoveRequest; response: DocumentMoveResponse };
  /** Ask which documents a project has. */
  "document:list": { request: DocumentListRequest; response: DocumentListResponse };
  /** Ask for the text of a document. */
  "document:text": { request: DocumentTextRequest; response: DocumentTextResponse };
  /** Ask for the paragraphs of a document. */
  "document:chunks": { request: DocumentChunksRequest; response: DocumentChunksResponse };
  /** Ask which projects there are. */
  "project:list": { request: ProjectListRequest; response: ProjectListResponse };
  /** Forget a project with all its documents. */
  "project:delete": { request: ProjectDeleteRequest; response: ProjectDeleteResponse };
}

export type ChannelName = keyof Channels;

/** The channels that tell places in a text, and can count them as JavaScript does. */
export const CHANNELS_WITH_OFFSETS = [
  "embedding:search",
  "search:fts:query",
  "document:chunks",
] as const satisfies readonly ChannelName[];
