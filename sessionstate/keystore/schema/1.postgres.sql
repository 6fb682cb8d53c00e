-- Second line of defence between tenants: see docs/scale.md.
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_keys USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
