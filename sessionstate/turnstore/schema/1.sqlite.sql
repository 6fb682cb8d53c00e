-- There is no other index than the key: a sweep is rare, and reads at most ten thousand rows.
CREATE TABLE IF NOT EXISTS turns (
	key        BLOB PRIMARY KEY,           -- SHA-256
	used       INTEGER NOT NULL,           -- nanoseconds since 1970, as the next
	held_until INTEGER NOT NULL DEFAULT 0,
	deferred   INTEGER NOT NULL DEFAULT 0, -- how often it was settled as Unseen
	closed     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID, STRICT;
