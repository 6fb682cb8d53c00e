package serve

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// bounds are the bounds, in seconds, of the histogram of request durations.
var bounds = [...]float64{0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60}

// otherPaths is the label of requests to paths that no server has. Clients can invent such paths, so
// they are counted together.
const otherPaths = "other"

// counts holds the counters of requests to one path that /metrics shows.
type counts struct {
	mu       sync.Mutex
	requests [len(methods)][1000]uint64 // by method and status; 0 for no answer, and net/http allows up to 999
	took     [len(bounds) + 1]uint64    // POSTs, by the first bound that is not below the duration
	sum      float64                    // of the durations of POSTs, in seconds
}

// methods are the methods that are counted separately. A client may send any method.
var methods = [...]string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions, "other"}

func (c *counts) add(method string, status int, took time.Duration) {
	// The last method stands for all others.
	of := 0
	for of < len(methods)-1 && methods[of] != method {
		of++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[of][status]++
	if method != http.MethodPost {
		return // a GET takes as long as its session
	}
	c.took[sort.SearchFloat64s(bounds[:], took.Seconds())]++
	c.sum += took.Seconds()
}

// metrics serves metrics in the text format of Prometheus.
func (s *service) metrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	gauge := func(name, help string, value int) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n%s %d\n", name, help, name, name, value)
	}
	sessions, inFlight := s.limits.Counts()
	gauge("attache_sessions", "Sessions that are open.", sessions)
	gauge("attache_requests_in_flight", "Messages of clients that are being served.", inFlight)
	gauge("attache_upstreams", "Servers that run for sessions.", s.children.count())
	s.writeCounts(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}

// writeCounts writes the counters of requests, by path.
func (s *service) writeCounts(b *strings.Builder) {
	paths := slices.Sorted(maps.Keys(s.counts))
	b.WriteString("# HELP attache_http_requests_total Requests that were answered.\n# TYPE attache_http_requests_total counter\n")
	for _, path := range paths {
		s.counts[path].writeRequests(b, path)
	}
	fmt.Fprintf(b, "# HELP %s How long it took to answer a POST.\n# TYPE %s histogram\n", durations, durations)
	for _, path := range paths {
		s.counts[path].writeDurations(b, path)
	}
}

// writeRequests writes how many requests had each method and status.
func (c *counts) writeRequests(b *strings.Builder, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Statuses that did not occur are left out: a thousand lines for each method would say nothing.
	for i, method := range methods {
		for status, n := range c.requests[i] {
			if n > 0 {
				fmt.Fprintf(b, "attache_http_requests_total{path=%q,method=%q,status=\"%d\"} %d\n", path, method, status, n)
			}
		}
	}
}

// durations is the name of the histogram of request durations.
const durations = "attache_http_post_duration_seconds"

// writeDurations writes the histogram of one path. In Prometheus each bucket includes those below it.
func (c *counts) writeDurations(b *strings.Builder, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := uint64(0)
	for i, bound := range bounds {
		total += c.took[i]
		fmt.Fprintf(b, "%s_bucket{path=%q,le=\"%g\"} %d\n", durations, path, bound, total)
	}
	total += c.took[len(bounds)]
	fmt.Fprintf(b, "%s_bucket{path=%q,le=\"+Inf\"} %d\n%s_sum{path=%q} %g\n%s_count{path=%q} %d\n", durations, path, total, durations, path, c.sum, durations, path, total)
}
