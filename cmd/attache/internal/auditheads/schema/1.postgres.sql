ALTER TABLE audit_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_heads USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on')
