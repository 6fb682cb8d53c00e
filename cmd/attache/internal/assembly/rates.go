package assembly

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/ratestore"
)

// ratesEnd is how long a process waits at its end to return unused tokens.
const ratesEnd = 300 * time.Millisecond

// A rateDatabase lends the tokens of rates that several machines share: a process borrows some tokens at once and
// spends them without asking. When the process ends, it returns the tokens that it has not spent. Otherwise other
// processes would lack these tokens until the bucket has filled again.
type rateDatabase struct {
	*ratestore.Store
	log    *slog.Logger
	warned sync.Once
}

// Lend implements [sessionstate.Lender]. It warns once if the database answers with an error. A
// database that does not answer is reported elsewhere, for the whole process.
func (r *rateDatabase) Lend(ctx context.Context, b sessionstate.Bucket, d sessionstate.Demand) (sessionstate.Loan, error) {
	loan, err := r.Store.Lend(ctx, b, d)
	if err != nil && !errors.Is(err, database.ErrDown) {
		r.warned.Do(func() {
			r.log.Warn("the rate limits are not those of the shared database; rates.down says what happens to calls", "err", err)
		})
	}
	return loan, err
}

// rateLimiters returns the limiters that count calls. They survive a reload, which would otherwise fill all buckets. A
// dry run has limiters of its own, without a Lender, so that it uses up no tokens of real calls.
func (s *Shared) rateLimiters() *access.Limiters {
	if s.settings.DryRun {
		return &s.process.dryRunLimiters
	}
	return &s.process.limiters
}
