-- Second line of defence between tenants: see docs/scale.md.
ALTER TABLE rate_buckets ENABLE ROW LEVEL SECURITY;
ALTER TABLE rate_buckets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON rate_buckets USING (tenant = current_setting('attache.tenant', true) OR current_setting('attache.all_tenants', true) = 'on');
