-- The sessions of a front, and those that were left first, without reading the others.
CREATE INDEX front_sessions_left ON front_sessions (tenant, front, left_at);
DROP INDEX front_sessions_front
