CREATE TABLE fronts (
	tenant TEXT NOT NULL, id TEXT NOT NULL,
	host TEXT NOT NULL,                  -- the machine
	address TEXT NOT NULL,               -- where a balancer reaches it
	service TEXT NOT NULL,               -- what it serves
	until BIGINT NOT NULL,               -- the end of its lease, in nanoseconds since 1970
	ending BIGINT NOT NULL DEFAULT 0,    -- it takes no more sessions
	PRIMARY KEY (tenant, id));
CREATE TABLE front_sessions (
	tenant TEXT NOT NULL, server TEXT NOT NULL,
	id TEXT NOT NULL,                    -- SHA-256 of the session's id
	principal TEXT NOT NULL,
	front TEXT NOT NULL DEFAULT '',      -- that has it; '' for none
	left_at BIGINT NOT NULL DEFAULT 0,   -- when it was left
	initialize TEXT NOT NULL,            -- params of the client
	version TEXT NOT NULL, capabilities TEXT NOT NULL,
	level TEXT NOT NULL, subscriptions TEXT NOT NULL,
	PRIMARY KEY (tenant, server, id));
CREATE INDEX front_sessions_front ON front_sessions (tenant, front)
