//go:build linux

package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A sample is the resident memory of a process at a time.
type sample struct {
	at    time.Duration
	bytes float64
}

const mib = 1 << 20

// watch samples memory until ctx is done.
func (r *run) watch(ctx context.Context) {
	for began := time.Now(); ctx.Err() == nil; pause(ctx, 2*time.Second) {
		if n, err := machine.Resident(r.steady.pid()); err == nil {
			r.samples[r.steady.name] = append(r.samples[r.steady.name], sample{time.Since(began), n})
		}
	}
}

// slope returns by how many bytes a second memory grows, by least squares over the samples
// after the first third, in which memory fills.
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

// mostGrowth is by how much memory may grow in a run, by the slope of it. Resident memory
// depends on when garbage is collected, by some MiB.
const mostGrowth = 24 * mib

// report writes the report, and notes what is broken.
func (r *run) report(took time.Duration, before, after state) error {
	a := r.account
	executed, err := a.checkLedger(r.ledger)
	if err != nil {
		return err
	}
	for _, name := range after.beyond(before) {
		a.fault("%s: %d at the start, %d at the end", name, before[name], after[name])
	}
	w := r.o.Out
	rows, total := a.counts()
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
	fmt.Fprint(w, "\n| memory | at the start | at the end | slope |\n|---|---|---|---|\n")
	for name, all := range r.samples {
		s := slope(all)
		fmt.Fprintf(w, "| %s | %.1f MiB | %.1f MiB | %+.1f MiB/hour |\n", name, all[0].bytes/mib, all[len(all)-1].bytes/mib, s*3600/mib)
		if s*took.Seconds() > mostGrowth {
			a.fault("the memory of %s grows by %.1f MiB/hour", name, s*3600/mib)
		}
	}
	fmt.Fprintf(w, "\n%d faults\n", len(a.faults)+a.more)
	for _, f := range a.faults {
		fmt.Fprintln(w, "-", f)
	}
	return nil
}
