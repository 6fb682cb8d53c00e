package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
	"github.com/attache-mcp/attache/sessionstate/database/pgserver"
)

// serverConnections is the number of connections from pgbouncer to PostgreSQL, as in docs/scale.md.
const serverConnections = 20

// A gauge reads the resource use of the servers.
type gauge struct {
	cluster    *pgserver.Cluster
	postmaster int
	bouncer    int
	resident   float64 // of pgbouncer without clients
	files      int     // open files of pgbouncer without clients
}

// A reading has the resources used up to a point in time.
type reading struct {
	at                            time.Time
	database, bouncer, own, whole time.Duration // CPU
	wal, commits, size            int64
}

func newGauge(cluster *pgserver.Cluster, bouncer *pgserver.Bouncer) (*gauge, error) {
	g := &gauge{cluster: cluster}
	var err error
	if g.postmaster, err = cluster.PID(); err != nil {
		return nil, err
	}
	if g.bouncer, err = bouncer.PID(); err != nil {
		return nil, err
	}
	g.files = openFiles(g.bouncer)
	g.resident, err = machine.Resident(g.bouncer)
	return g, err
}

// read reads all figures. A figure that cannot be read is 0.
func (g *gauge) read() reading {
	r := reading{at: time.Now(), whole: machine.Busy()}
	r.database = treeTime(g.postmaster)
	r.bouncer, _ = machine.CPUTime(g.bouncer)
	r.own, _ = machine.CPUTime(os.Getpid())
	_ = g.cluster.Ask("postgres", `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, sum(xact_commit)::bigint, pg_database_size('d1') FROM pg_stat_database`,
		&r.wal, &r.commits, &r.size)
	return r
}

// minus returns the resources used since reading b.
func (r reading) minus(b reading) reading {
	return reading{r.at, r.database - b.database, r.bouncer - b.bouncer, r.own - b.own, r.whole - b.whole, r.wal - b.wal, r.commits - b.commits, r.size - b.size}
}

// treeTime returns the CPU time of a process and its children, including ended children.
func treeTime(pid int) time.Duration {
	var sum time.Duration
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ") // after the name, which may have spaces
	for i, f := range strings.Fields(rest) {
		if i == 13 || i == 14 { // cutime and cstime
			n, _ := strconv.Atoi(f)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	for _, p := range append(children(pid), pid) {
		d, _ := machine.CPUTime(p)
		sum += d
	}
	return sum
}

// children returns the child processes of a process.
func children(pid int) (all []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		b, _ := os.ReadFile(path)
		for f := range strings.FieldsSeq(string(b)) {
			n, _ := strconv.Atoi(f)
			all = append(all, n)
		}
	}
	return all
}

// memory returns the number of connections to PostgreSQL and to pgbouncer, and the bytes for one of each.
func (g *gauge) memory() (backends, clients int, backend, client float64) {
	var pids string
	_ = g.cluster.Ask("postgres", `SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`, &pids)
	for f := range strings.FieldsSeq(pids) {
		if n, err := proportional(f); err == nil {
			backends++
			backend += n
		}
	}
	clients = max(openFiles(g.bouncer)-g.files-serverConnections, 1)
	now, _ := machine.Resident(g.bouncer)
	return backends, clients, backend / float64(max(backends, 1)), (now - g.resident) / float64(clients)
}

// proportional returns the memory of a process in bytes, with its share of shared pages.
func proportional(pid string) (kib float64, err error) {
	b, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	_, rest, _ := strings.Cut(string(b), "\nPss:")
	_, err = fmt.Sscan(rest, &kib)
	return kib * 1024, err
}

func openFiles(pid int) int {
	all, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(all)
}
