-- Indexes for the sweep, so that it does not read whole tables.
CREATE INDEX messages_bodies ON messages (carried) WHERE body <> '' AND carried IS NOT NULL;
CREATE INDEX messages_settled ON messages (created) WHERE state <> 'queued';
CREATE INDEX sessions_open ON sessions (created) WHERE ended IS NULL;
CREATE INDEX sessions_over ON sessions (ended) WHERE ended IS NOT NULL
