CREATE TABLE rate_buckets (
	tenant    TEXT NOT NULL,    -- '' for a bucket that is no tenant's
	bucket    TEXT NOT NULL,    -- a digest of the rate and of whose calls it counts
	full_at   BIGINT NOT NULL,  -- when the bucket is full again, in nanoseconds since 1970
	minute    BIGINT NOT NULL,  -- in which processes were counted last
	processes BIGINT NOT NULL,  -- that asked for tokens in that minute
	earlier   BIGINT NOT NULL,  -- and in the one before
	PRIMARY KEY (tenant, bucket));
-- For the sweep: a bucket that is full needs no row.
CREATE INDEX rate_buckets_full ON rate_buckets (full_at);
