CREATE TABLE audit_heads (
	tenant TEXT NOT NULL,                -- '': a file has the records of all
	file TEXT NOT NULL,                  -- the digest of its first line
	hour BIGINT NOT NULL,                -- that began then, in nanoseconds since 1970
	host TEXT NOT NULL, path TEXT NOT NULL, -- where it was written
	seq BIGINT NOT NULL, digest TEXT NOT NULL, -- of the last line
	noted BIGINT NOT NULL,               -- when that was noted
	PRIMARY KEY (tenant, file, hour));
CREATE INDEX audit_heads_path ON audit_heads (tenant, host, path, hour)
