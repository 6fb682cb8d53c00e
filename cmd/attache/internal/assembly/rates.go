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

// ratesEnd is how long the end of a process waits for tokens to be given back.
const ratesEnd = 300 * time.Millisecond

// A rateDatabase lends the tokens of rates that several machines share.
type rateDatabase struct {
	*ratestore.Store
	log    *slog.Logger
	warned sync.Once
}

// Lend implements [sessionstate.Lender]. It warns once of a database that answers and does not
// lend: of one that is away the whole process is told.
func (r *rateDatabase) Lend(ctx context.Context, b sessionstate.Bucket, d sessionstate.Demand) (sessionstate.Loan, error) {
	loan, err := r.Store.Lend(ctx, b, d)
	if err != nil && !errors.Is(err, database.ErrDown) {
		r.warned.Do(func() {
			r.log.Warn("the rate limits are not those of the shared database; rates.down says what happens to calls", "err", err)
		})
	}
	return loan, err
}

// openRates has the rates of the process in a database.
func (p *process) openRates(db *database.Server) {
	p.limiters.Lender = &rateDatabase{Store: ratestore.New(db.Open(ratestore.Schema())), log: p.Log}
}

// rateLimiters returns what counts the calls: a dry run takes nothing from a real one.
func (s *Shared) rateLimiters() *access.Limiters {
	if s.settings.DryRun {
		return &s.process.rehearsed
	}
	return &s.process.limiters
}

// closeRates gives back the tokens that were not used.
func (p *process) closeRates() {
	ctx, cancel := context.WithTimeout(context.Background(), ratesEnd)
	defer cancel()
	p.limiters.Close(ctx)
}
