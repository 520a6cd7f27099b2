-- The ledger of one KMS. Every wrap column holds octets wrapped under the KEK; nothing else holds key octets.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;

-- What is remembered of each link, and what has been counted on it since the ledger began.
CREATE TABLE link (
    name       TEXT PRIMARY KEY,
    peer_epoch BLOB,
    batch      INTEGER NOT NULL DEFAULT 0,
    delivered  INTEGER NOT NULL DEFAULT 0,
    voided     INTEGER NOT NULL DEFAULT 0,
    expired    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A block is GENERATED while key_id is null, RESERVED for that key otherwise. A used block has no row.
CREATE TABLE block (
    number    INTEGER PRIMARY KEY,
    id        BLOB NOT NULL UNIQUE,
    link      TEXT NOT NULL REFERENCES link (name),
    owner     INTEGER NOT NULL,           -- 0 alice, 1 bob
    batch     INTEGER NOT NULL,
    confirmed INTEGER NOT NULL,           -- 1: both ends have it
    octets    INTEGER NOT NULL,
    wrap      BLOB NOT NULL,
    key_id    BLOB,
    position  INTEGER                     -- place within the key
) STRICT;
-- Holds all that a count of the stock looks at.
CREATE INDEX block_stock ON block (link, owner, confirmed, key_id, octets);
CREATE INDEX block_of_key ON block (key_id) WHERE key_id IS NOT NULL;
CREATE INDEX block_pending ON block (link, batch) WHERE confirmed = 0;

-- States: 1 RESERVED, 2 DELIVERED_MASTER, 3 DELIVERED_SLAVE, 4 DESTROYED (wrap is null then).
CREATE TABLE key (
    number    INTEGER PRIMARY KEY,
    id        BLOB NOT NULL UNIQUE,
    link      TEXT NOT NULL REFERENCES link (name),
    initiator TEXT NOT NULL,
    state     INTEGER NOT NULL,
    octets    INTEGER NOT NULL,
    made_s    INTEGER NOT NULL,
    wrap      BLOB,
    reason    TEXT,                       -- why it was destroyed
    CHECK (state != 4 OR wrap IS NULL)
) STRICT;
CREATE INDEX key_state ON key (state, made_s);
CREATE INDEX key_held ON key (link) WHERE wrap IS NOT NULL;

-- For whom a key is held, and who was given it: once each.
CREATE TABLE target (
    key_id   BLOB NOT NULL,
    consumer TEXT NOT NULL,
    PRIMARY KEY (key_id, consumer)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
    key_id   BLOB NOT NULL,
    consumer TEXT NOT NULL,
    PRIMARY KEY (key_id, consumer)
) STRICT, WITHOUT ROWID;

-- Voids that the peer has yet to be told.
CREATE TABLE outbox (
    number    INTEGER PRIMARY KEY,
    key_id    BLOB NOT NULL UNIQUE,
    link      TEXT NOT NULL,
    octets    INTEGER NOT NULL,
    block_ids BLOB NOT NULL
) STRICT;
