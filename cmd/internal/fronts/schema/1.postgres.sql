-- Second line of defence between tenants: see the migration of the engine in docs/scale.md.
ALTER TABLE fronts ENABLE ROW LEVEL SECURITY;
ALTER TABLE fronts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON fronts USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
ALTER TABLE front_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE front_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON front_sessions USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
