package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A sample is the live memory of the steady front at a point in time.
type sample struct {
	at    time.Duration
	bytes float64
}

const mib = 1 << 20

// live returns the front's reachable memory at its last garbage collection. At the default of
// GOGC the next collection is due at twice that.
func (f *program) live(ctx context.Context) (bytes float64, err error) {
	text, err := f.get(ctx, "/debug/pprof/heap?debug=1")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "# NextGC = ")
	next, _, _ := strings.Cut(rest, "\n")
	bytes, err = strconv.ParseFloat(next, 64)
	return bytes / 2, err
}

// liveAtRest returns the front's reachable memory after two garbage collections: the second
// one empties its pools.
func (f *program) liveAtRest(ctx context.Context) (float64, error) {
	for range 2 {
		if _, err := f.get(ctx, "/debug/pprof/heap?debug=1&gc=1"); err != nil {
			return 0, err
		}
	}
	return f.live(ctx)
}

// watch samples memory until ctx is done.
func (r *run) watch(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil; machine.Pause(ctx, 2*time.Second) {
		at := time.Since(began)
		if n, err := r.steady.live(ctx); err == nil {
			r.samples = append(r.samples, sample{at, n})
		}
	}
}

// slope returns the growth of memory in bytes a second, by least squares. It leaves out the
// first third of the samples, in which caches fill.
func slope(all []sample) float64 {
	all = all[len(all)/3:]
	var n, x, y, xx, xy float64
	for _, s := range all {
		t := s.at.Seconds()
		n, x, y, xx, xy = n+1, x+t, y+s.bytes, xx+t*t, xy+t*s.bytes
	}
	if d := n*xx - x*x; d > 0 {
		return (n*xy - x*y) / d
	}
	return 0
}

// mostGrowth is the limit for the growth of live memory in a run, by its slope: buffers for long
// lines are lent and collected again, so it varies by some 8 MiB. mostLeft is the limit for
// additional reachable memory when all sessions have ended.
const (
	mostGrowth = 64 * mib
	mostLeft   = 24 * mib
)

// report writes the report. It records a fault for each broken bound.
func (r *run) report(took time.Duration, before, after state, live float64) error {
	a := r.account
	executed, err := a.checkLedger(r.ledger)
	if err != nil {
		return err
	}
	for _, name := range after.beyond(before) {
		a.fault("%s: %d at the start, %d at the end", name, before[name], after[name])
	}
	w := r.o.Out
	rows, total := a.table()
	fmt.Fprintf(w, "\nsoak of %v, -seed %d: %d requests (%.0f a second), %d calls executed\n\n| clients | answer | requests |\n|---|---|---|\n%s\n",
		took.Round(time.Second), r.o.Seed, total, float64(total)/took.Seconds(), executed, strings.Join(rows, "\n"))
	fmt.Fprint(w, "\n| disturbance | times |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(a.events)) {
		fmt.Fprintf(w, "| %s | %d |\n", name, a.events[name])
	}
	fmt.Fprint(w, "\n| what | at the start | at the end |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(after)) {
		fmt.Fprintf(w, "| %s | %d | %d |\n", name, before[name], after[name])
	}
	if all := r.samples; len(all) > 0 {
		s, first := slope(all), all[0].bytes
		fmt.Fprintf(w, "\nlive memory: %.1f MiB at the start, %.1f at the end, %+.1f an hour; %.1f when all sessions have ended\n",
			first/mib, all[len(all)-1].bytes/mib, s*3600/mib, live/mib)
		if s*took.Seconds() > mostGrowth {
			a.fault("live memory grows by %.1f MiB an hour", s*3600/mib)
		}
		if live > first+mostLeft {
			a.fault("%.1f MiB are reachable when all sessions have ended", live/mib)
		}
	}
	fmt.Fprintf(w, "\n%d faults\n", len(a.faults)+a.more)
	for _, f := range a.faults {
		fmt.Fprintln(w, "-", f)
	}
	return nil
}
