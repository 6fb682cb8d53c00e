CREATE TABLE turns (
	tenant     TEXT NOT NULL,
	key        TEXT NOT NULL,              -- SHA-256, in hexadecimal
	used       BIGINT NOT NULL,            -- nanoseconds since 1970, as the next
	held_until BIGINT NOT NULL DEFAULT 0,
	deferred   BIGINT NOT NULL DEFAULT 0,  -- how often it was settled as Unseen
	closed     BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, key)
);
CREATE INDEX turns_used ON turns (tenant, used);
ALTER TABLE turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE turns FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON turns USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
