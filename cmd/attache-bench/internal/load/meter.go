package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A meter records the durations of requests.
type meter struct {
	mu    sync.Mutex
	began time.Time
	kinds map[string]*series
}

// A series has the requests of one kind.
type series struct {
	took   []time.Duration
	errors map[string]int
}

func newMeter() *meter { return &meter{began: time.Now(), kinds: map[string]*series{}} }

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.kinds = time.Now(), map[string]*series{}
}

// time runs a request and records its duration, unless its session ended meanwhile.
func (w *world) time(kind string, f func() error) error {
	began := time.Now()
	err := f()
	took := time.Since(began)
	if w.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}
	m := w.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.kinds[kind]
	if s == nil {
		s = &series{errors: map[string]int{}}
		m.kinds[kind] = s
	}
	s.took = append(s.took, took)
	if err != nil {
		s.errors[err.Error()]++
	}
	return err
}

// count returns the number of requests and of failed ones.
func (m *meter) count() (all, failed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.kinds {
		all += len(s.took)
		for _, n := range s.errors {
			failed += n
		}
	}
	return all, failed
}

func (m *meter) quantile(kind string, q float64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.kinds[kind]; s != nil {
		return s.quantile(q)
	}
	return 0
}

func (s *series) quantile(q float64) time.Duration {
	all := slices.Sorted(slices.Values(s.took))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// write writes a table of the kinds, and the errors.
func (m *meter) write(w io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seconds := time.Since(m.began).Seconds()
	fmt.Fprintln(w, "| request | a second | p50 ms | p99 ms | most ms | failed |\n|---|---|---|---|---|---|")
	var faults []string
	for _, kind := range slices.Sorted(maps.Keys(m.kinds)) {
		s, failed := m.kinds[kind], 0
		for text, n := range s.errors {
			failed += n
			faults = append(faults, fmt.Sprintf("- %s: %d times: %s\n", kind, n, text))
		}
		fmt.Fprintf(w, "| %s | %.1f | %.2f | %.2f | %.0f | %d |\n", kind, float64(len(s.took))/seconds,
			milliseconds(s.quantile(0.5)), milliseconds(s.quantile(0.99)), milliseconds(s.quantile(1)), failed)
	}
	slices.Sort(faults)
	fmt.Fprint(w, strings.Join(faults, ""), "\n")
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
