-- Times are in nanoseconds since 1970. The types are those that SQLite and PostgreSQL share.
CREATE TABLE workspaces (tenant TEXT NOT NULL, id TEXT NOT NULL, live BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (tenant, id));
CREATE TABLE sessions (
	tenant TEXT NOT NULL, id TEXT NOT NULL,
	key TEXT NOT NULL,                   -- SHA-256 of the session key
	token TEXT NOT NULL DEFAULT '',      -- SHA-256 of the token of a spawned session
	workspace TEXT NOT NULL, trust TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '',
	title TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL DEFAULT '',
	parent TEXT NOT NULL DEFAULT '', created_by TEXT NOT NULL, depth BIGINT NOT NULL DEFAULT 0,
	children BIGINT NOT NULL DEFAULT 0,  -- running now
	spawned BIGINT NOT NULL DEFAULT 0,   -- in its life
	last_spawn BIGINT NOT NULL DEFAULT 0, spawn_key TEXT,
	queued BIGINT NOT NULL DEFAULT 0, next_seq BIGINT NOT NULL DEFAULT 0,
	inbox_until BIGINT NOT NULL DEFAULT 0, inbox_owner TEXT NOT NULL DEFAULT '', woken BIGINT NOT NULL DEFAULT 0,
	run BIGINT NOT NULL DEFAULT 0, run_until BIGINT NOT NULL DEFAULT 0, run_state TEXT NOT NULL DEFAULT '',
	agent_session TEXT, exit_status BIGINT NOT NULL DEFAULT 0, cost_usd TEXT NOT NULL DEFAULT '',
	created BIGINT NOT NULL, seen BIGINT NOT NULL, ended BIGINT, PRIMARY KEY (tenant, id));
CREATE UNIQUE INDEX sessions_key ON sessions (tenant, key);
CREATE INDEX sessions_agent ON sessions (tenant, agent_session) WHERE agent_session IS NOT NULL;
CREATE UNIQUE INDEX sessions_spawn ON sessions (tenant, parent, spawn_key) WHERE spawn_key IS NOT NULL;
CREATE INDEX sessions_ws ON sessions (tenant, workspace, created) WHERE ended IS NULL;
CREATE INDEX sessions_parent ON sessions (tenant, parent);
CREATE INDEX sessions_run ON sessions (run_until) WHERE run_state IN ('starting', 'running');
CREATE TABLE attachments (
	tenant TEXT NOT NULL, session TEXT NOT NULL, instance TEXT NOT NULL,
	server TEXT NOT NULL, host TEXT NOT NULL, pid BIGINT NOT NULL,
	wakes BIGINT NOT NULL DEFAULT 0,     -- this process can wake the session
	until BIGINT NOT NULL, called BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (tenant, session, instance));
CREATE TABLE messages (
	tenant TEXT NOT NULL, to_session TEXT NOT NULL, seq BIGINT NOT NULL,
	id TEXT NOT NULL, from_session TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
	digest TEXT NOT NULL, send_key TEXT, state TEXT NOT NULL,
	reported TEXT NOT NULL DEFAULT 'queued', -- the state that the sender knows
	tries BIGINT NOT NULL DEFAULT 0, announced BIGINT NOT NULL DEFAULT 0,
	created BIGINT NOT NULL, expires BIGINT NOT NULL, carried BIGINT, carried_by TEXT, seen BIGINT,
	PRIMARY KEY (tenant, to_session, seq));
CREATE UNIQUE INDEX messages_id ON messages (tenant, id);
CREATE INDEX messages_open ON messages (tenant, to_session, seq) WHERE state = 'queued';
CREATE INDEX messages_due ON messages (expires) WHERE state = 'queued';
CREATE INDEX messages_from ON messages (tenant, from_session, to_session, created);
CREATE UNIQUE INDEX messages_key ON messages (tenant, from_session, to_session, send_key) WHERE send_key IS NOT NULL;
