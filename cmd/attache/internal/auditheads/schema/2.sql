-- What is too old is found without reading the table.
CREATE INDEX audit_heads_hour ON audit_heads (tenant, hour)
