-- Second line of defence between tenants: see docs/scale.md.
ALTER TABLE workspaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE workspaces FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON workspaces USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sessions USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
ALTER TABLE attachments ENABLE ROW LEVEL SECURITY;
ALTER TABLE attachments FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON attachments USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
ALTER TABLE messages ENABLE ROW LEVEL SECURITY;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON messages USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
-- The lease of the process that sweeps, so that thousands of processes do not sweep at once.
CREATE TABLE leases (tenant TEXT NOT NULL, name TEXT NOT NULL, until BIGINT NOT NULL, PRIMARY KEY (tenant, name));
ALTER TABLE leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE leases FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON leases USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
