"""The tables of the store. Steps are only ever added: what was released is never edited.

Every table that holds somebody's data has a `user_id`, empty for what belongs to nobody in particular, so that a policy
can fence it (`database.postgres.schema`). A collection belongs to one user: two users may have collections, and ids, of
the same name.
"""

from __future__ import annotations

from homing.database import Step, Transaction
from homing.database.postgres.driver import Connection
from homing.errors import StoreCorrupt

COMPONENT = "store"

WIDEST = 16_000
"""Dimensions that pgvector can hold."""
WIDEST_INLINE = 1_800
"""Dimensions up to which a vector stays in its row, on one page: comparing it then needs no second look-up."""

# A record's key is never used twice: another text, or other keywords, are another key. Texts that PostgreSQL cannot
# hold (NUL, half a surrogate pair) are written escaped. Metadata is json: jsonb would change numbers, and refuses NUL.
# `hash` is that of the text (records.text_hash); a vector has the hash of the text that it was made from.
#
# attributes begin with the number of the collection: an index entry leads to records of one collection only, whatever
# the others hold. The array index collects the entries of a write and sorts them in together, three times as fast as
# one by one. The writer has them sorted in before it commits (writing.py): a search would read the waiting ones from
# end to end.
#
# word_segments, word_pieces and word_removals are the keyword index (words.py). Postings are not compressed: they would
# hardly become smaller.
#
# A space is a model whose vectors are held, in a table of their own. `held` lists the spaces that a collection has
# vectors in; `collections.space` is the one that is searched.
#
# tallies hold differences: each write adds a row, so that writers never wait for each other over a counter, and what a
# transaction sees as the sum is exact. Now and then a writer folds the rows of a collection into one.
_TABLES = """
CREATE TABLE spaces(
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text COLLATE "C" NOT NULL, dimensions integer NOT NULL, indexed boolean NOT NULL DEFAULT false,
    UNIQUE (model, dimensions)
);
CREATE TABLE collections(
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, space integer REFERENCES spaces,
    UNIQUE (user_id, name)
);
CREATE TABLE tallies(
    collection integer NOT NULL, user_id text COLLATE "C" NOT NULL,
    records bigint NOT NULL, embedded bigint NOT NULL
);
CREATE INDEX tallies_by_collection ON tallies(collection);
CREATE TABLE held(
    collection integer NOT NULL, user_id text COLLATE "C" NOT NULL, space integer NOT NULL REFERENCES spaces,
    PRIMARY KEY (collection, space)
);
CREATE SEQUENCE keys AS bigint;
CREATE TABLE records(
    key bigint PRIMARY KEY,
    collection integer NOT NULL, user_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    attributes text[] COLLATE "C" NOT NULL, metadata json NOT NULL, hash bytea NOT NULL,
    escaped boolean NOT NULL, text text NOT NULL, keywords text,
    UNIQUE (collection, id)
);
CREATE INDEX records_by_attribute ON records USING gin (attributes);
CREATE TABLE word_segments(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection integer NOT NULL,
    user_id text COLLATE "C" NOT NULL, texts integer NOT NULL, postings bigint NOT NULL, header bytea NOT NULL
);
CREATE INDEX word_segments_by_collection ON word_segments(collection);
CREATE TABLE word_pieces(
    segment bigint NOT NULL, number integer NOT NULL, user_id text COLLATE "C" NOT NULL, postings bytea NOT NULL,
    PRIMARY KEY (segment, number)
);
CREATE TABLE word_removals(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection integer NOT NULL,
    user_id text COLLATE "C" NOT NULL, texts integer NOT NULL, keys bytea NOT NULL
);
CREATE INDEX word_removals_by_collection ON word_removals(collection);
ALTER TABLE word_segments ALTER header SET STORAGE EXTERNAL;
ALTER TABLE word_pieces ALTER postings SET STORAGE EXTERNAL;
"""


def _create(transaction: Transaction) -> None:
    """Make the tables; where one of these exists, the schema is somebody else's."""
    [(foreign,)] = transaction.rows(
        "SELECT string_agg(tablename, ', ' ORDER BY tablename) FROM pg_tables "
        "WHERE schemaname = current_schema() AND tablename = ANY($1)",
        ["spaces", "collections", "tallies", "held", "records", "word_segments", "word_pieces", "word_removals"],
    )
    if foreign:
        raise StoreCorrupt(
            f"this schema has tables that are not Homing's ({foreign}); give the store a schema of its own",
            details={"tables": foreign},
        )
    transaction.connection.execute(_TABLES)


STEPS: tuple[Step, ...] = (_create,)


def vector_table(space: int) -> str:
    """The table that holds the vectors of a space."""
    return f"vectors_{int(space)}"


def create_vector_table(connection: Connection, space: int, dimensions: int) -> None:
    """A table for the vectors of one model."""
    table = vector_table(space)
    storage = "PLAIN" if dimensions <= WIDEST_INLINE else "EXTERNAL"
    connection.execute(
        f"CREATE TABLE {table}(record bigint PRIMARY KEY, collection integer NOT NULL, "
        f'user_id text COLLATE "C" NOT NULL, hash bytea NOT NULL, embedding vector({int(dimensions)}) NOT NULL);'
        f"ALTER TABLE {table} ALTER embedding SET STORAGE {storage};"
        f"CREATE INDEX {table}_by_collection ON {table}(collection)"
    )
