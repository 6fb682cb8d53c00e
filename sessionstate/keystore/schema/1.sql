CREATE TABLE api_keys (
	tenant      TEXT NOT NULL,           -- of the owner
	hash        TEXT NOT NULL,           -- SHA-256 of the key, in hexadecimal
	id          TEXT NOT NULL,
	owner       TEXT NOT NULL,           -- the user; "user" is a word of SQL
	email       TEXT NOT NULL,
	roles       TEXT NOT NULL,           -- a JSON array of texts, as the next
	permissions TEXT NOT NULL,
	plan        TEXT NOT NULL,
	scope       TEXT NOT NULL,
	trust       TEXT NOT NULL,
	created     TEXT NOT NULL,           -- RFC 3339, '' for none, as the next two
	expires     TEXT NOT NULL,
	revoked     TEXT NOT NULL,
	PRIMARY KEY (tenant, hash));
-- A look-up has the hash alone, and a person the id.
CREATE UNIQUE INDEX api_keys_hash ON api_keys (hash);
CREATE UNIQUE INDEX api_keys_id ON api_keys (id)
