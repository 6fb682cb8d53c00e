-- Turns belong to tenants. Programs of version 1 can no longer use the file.
ALTER TABLE turns RENAME TO turns1;
CREATE TABLE turns (
	tenant     TEXT NOT NULL,
	key        TEXT NOT NULL,              -- SHA-256, in hexadecimal
	used       INTEGER NOT NULL,           -- nanoseconds since 1970, as the next
	held_until INTEGER NOT NULL DEFAULT 0,
	deferred   INTEGER NOT NULL DEFAULT 0, -- how often it was settled as Unseen
	closed     INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, key)
) WITHOUT ROWID, STRICT;
INSERT INTO turns SELECT '', lower(hex(key)), used, held_until, deferred, closed FROM turns1;
DROP TABLE turns1;
