package load

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A speed is too high for the database when it completes less than the share leastDone of the
// requests, or more than the share mostFailed of them fail.
const (
	leastDone  = 0.9
	mostFailed = 0.001
)

// million is the number of sessions a day to which the figures are extrapolated.
const million = 1e6

// A rate has the figures of a part of the run.
type rate struct {
	used     reading
	seconds  float64
	requests float64 // a second
	failed   float64 // share of the requests
}

// since returns the figures since the meter was reset.
func (w *world) since(g *gauge, first reading) rate {
	now := g.read()
	r := rate{used: now.minus(first), seconds: now.at.Sub(first.at).Seconds()}
	all, failed := w.meter.count()
	r.requests, r.failed = float64(all)/r.seconds, float64(failed)/float64(max(all, 1))
	return r
}

// report writes the figures of the first part.
func (w *world) report(g *gauge, first reading, total int) rate {
	o, r := w.o, w.since(g, first)
	backends, clients, backend, client := g.memory()
	u := r.used
	cpu := func(d time.Duration) float64 { return d.Seconds() / r.seconds * 100 }
	fmt.Fprintf(o.Out, "attache-bench -load %v: %d sessions a day at their peak: %d at once, %d in %d stdio attaches over pgbouncer, the others in %d fronts. %d CPUs; others used %.0f%% of one.\n\n",
		o.Duration, o.Daily, total, o.Attaches/serversPerSession, o.Attaches, o.Fronts, runtime.NumCPU(), cpu(u.whole-u.database-u.bouncer-u.own))
	w.meter.write(o.Out)
	begun := float64(o.Daily) * peak / (24 * 60 * 60) * r.seconds * o.Speed // sessions, on average
	fmt.Fprintf(o.Out, "- %.1f sessions began a minute, the model says %.1f. %.0f requests and %.0f transactions a second.\n",
		float64(w.sessions.Load())/r.seconds*60, begun/r.seconds*60, r.requests, float64(u.commits)/r.seconds)
	fmt.Fprintf(o.Out, "- CPU in %% of one: PostgreSQL %.1f, pgbouncer %.1f, this program %.1f.\n", cpu(u.database), cpu(u.bouncer), cpu(u.own))
	fmt.Fprintf(o.Out, "- %d connections to PostgreSQL of %.2f MB each; %d to pgbouncer of %.1f kB each.\n", backends, backend/1e6, clients, client/1e3)
	fmt.Fprintf(o.Out, "- A session: %.0f ms of CPU of PostgreSQL and %.0f ms of pgbouncer, %.0f kB of WAL, %.1f kB of tables and indexes.\n",
		u.database.Seconds()*1000/begun, u.bouncer.Seconds()*1000/begun, float64(u.wal)/begun/1e3, float64(u.size)/begun/1e3)
	perSecond := million * peak / (24 * 60 * 60)
	fmt.Fprintf(o.Out, "- A million sessions a day: at the peak %.0f requests a second, %.1f CPUs of PostgreSQL, %.1f MB/s of WAL; %.0f GB of WAL a day.\n\n",
		r.requests/o.Speed*million/float64(o.Daily), u.database.Seconds()/begun*perSecond, float64(u.wal)/begun*perSecond/1e6, float64(u.wal)/begun*million/1e9)
	return r
}

// climb doubles the speed until the database does not keep up.
func (w *world) climb(ctx context.Context, g *gauge, base rate) error {
	fmt.Fprintln(w.o.Out, "| sessions a day | requests a second | done | send p99 ms | look p99 ms | failed | PostgreSQL CPU | machine CPU | WAL MB/s |\n|---|---|---|---|---|---|---|---|---|")
	for speed := 2.0; ; speed *= 2 {
		w.clock.set(speed * w.o.Speed)
		if !machine.Pause(ctx, w.o.Step/4) { // until it is steady
			return ctx.Err()
		}
		w.meter.reset()
		first := g.read()
		if !machine.Pause(ctx, w.o.Step) {
			return ctx.Err()
		}
		r := w.since(g, first)
		done := r.requests / (base.requests * speed)
		fmt.Fprintf(w.o.Out, "| %.0f | %.0f | %.0f%% | %.0f | %.0f | %.2f%% | %.0f%% | %.0f%% | %.1f |\n",
			float64(w.o.Daily)*speed, r.requests, done*100, milliseconds(w.meter.quantile("message sent", 0.99)), milliseconds(w.meter.quantile("look for mail", 0.99)),
			r.failed*100, r.used.database.Seconds()/r.seconds*100, r.used.whole.Seconds()/r.seconds*100, float64(r.used.wal)/r.seconds/1e6)
		if done < leastDone || r.failed > mostFailed {
			fmt.Fprintln(w.o.Out)
			w.meter.write(w.o.Out)
			w.clock.set(w.o.Speed)
			return nil
		}
	}
}
