package load

import (
	"context"
	"fmt"
	random "math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
	"github.com/attache-mcp/attache/cmd/internal/fronts"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/pgserver"
	"github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/turnstore"
)

// settings are for a small dedicated server that waits for the disk.
const settings = "-c max_connections=300 -c shared_buffers=512MB -c max_wal_size=4GB"

type world struct {
	o        Options
	ctx      context.Context // ends with the run
	clock    clock
	meter    *meter
	ledger   *ledger
	direct   string       // URL of the database
	pooled   string       // URL of the database over pgbouncer
	watches  string       // a directory: see [teams.Watch]
	sessions atomic.Int64 // begun so far
	stdio    atomic.Int64 // those of stdio attaches
	work     sync.WaitGroup

	stdioPerMember int // one in so many sessions of stdio attaches is in a team
}

// Run plays the load and writes its report.
func Run(ctx context.Context, o Options) (err error) {
	if o.Speed <= 0 {
		o.Speed = 1
	}
	fmt.Fprintln(o.Log, "load: starting PostgreSQL and pgbouncer")
	cluster, err := pgserver.New(pgserver.Options{Settings: settings})
	if err != nil {
		return err
	}
	defer cluster.Close()
	watches, err := os.MkdirTemp("", "attache-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(watches)
	ctx, cancel := context.WithCancel(ctx)
	w := &world{o: o, ctx: ctx, watches: watches, meter: newMeter(), ledger: newLedger(), clock: clock{since: time.Now(), speed: o.Speed}}
	g, err := w.prepare(cluster)
	if err == nil {
		err = w.play(ctx, g)
	}
	cancel()
	w.work.Wait()
	if err != nil {
		return err
	}
	return w.settle(context.WithoutCancel(ctx))
}

func (w *world) prepare(cluster *pgserver.Cluster) (*gauge, error) {
	bouncer, err := cluster.Bouncer(serverConnections)
	if err != nil {
		return nil, err
	}
	if w.direct, err = cluster.Database(); err != nil {
		return nil, err
	}
	w.pooled = bouncer.URL(w.direct)
	server, err := database.Connect(database.ServerOptions{URL: w.direct})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if _, err := server.Migrate(w.ctx, []database.Schema{teams.Schema(), turnstore.Schema(), fronts.Schema()}); err != nil {
		return nil, err
	}
	return newGauge(cluster, bouncer)
}

// play plays the first part, and then the higher speeds.
func (w *world) play(ctx context.Context, g *gauge) error {
	o := w.o
	total := o.Daily * peak * int(sessionTime/time.Second) / (24 * 60 * 60)
	fmt.Fprintf(o.Log, "load: %d sessions at once: %d in %d stdio attaches, the others in %d fronts\n", total, o.Attaches/serversPerSession, o.Attaches, o.Fronts)
	w.stdioPerMember = max(1, sessionsPerMember*o.Attaches/serversPerSession/max(total, 1))
	var homes [][]*attache // of each front
	for n := range o.Fronts {
		all, err := w.startFront(n)
		if err != nil {
			return err
		}
		homes = append(homes, all)
	}
	if err := w.limits(ctx, homes); err != nil {
		return err
	}
	ramp := min(o.Duration/5, 20*time.Second)
	for n := range total {
		w.work.Go(func() {
			if !machine.Pause(ctx, random.N(ramp)) {
				return
			}
			home := homes[n%len(homes)]
			for age := random.N(sessionTime); ctx.Err() == nil; age = 0 {
				if n < o.Attaches/serversPerSession {
					w.liveStdio(ctx, age)
					continue
				}
				w.live(ctx, home, age)
			}
		})
	}
	machine.Pause(ctx, 2*ramp)
	w.meter.reset()
	w.sessions.Store(0)
	first := g.read()
	if !machine.Pause(ctx, o.Duration) {
		return ctx.Err()
	}
	base := w.report(g, first, total)
	if o.Step <= 0 {
		return nil
	}
	return w.climb(ctx, g, base)
}

// liveStdio plays a session with stdio attaches.
func (w *world) liveStdio(ctx context.Context, age time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attaches, err := w.startStdio(ctx)
	if err != nil {
		fmt.Fprintln(w.o.Log, "load:", err)
		return
	}
	w.live(ctx, attaches, age)
}

// fast converts a duration of the model to real time at the current speed.
func (w *world) fast(d time.Duration) time.Duration {
	_, speed := w.clock.read()
	return time.Duration(float64(d) / speed)
}

// until waits until a time of the model. It returns false if ctx ends first.
func (w *world) until(ctx context.Context, at time.Duration) bool {
	for ctx.Err() == nil {
		left := at - w.clock.now()
		if left <= 0 {
			return true
		}
		machine.Pause(ctx, min(w.fast(left), time.Second)) // the speed may change
	}
	return false
}

// A clock shows the time of the model, which can pass faster than real time.
type clock struct {
	mu    sync.Mutex
	at    time.Duration
	since time.Time
	speed float64
}

func (c *clock) read() (now time.Duration, speed float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at + time.Duration(float64(time.Since(c.since))*c.speed), c.speed
}

func (c *clock) now() time.Duration {
	now, _ := c.read()
	return now
}

func (c *clock) set(speed float64) {
	now, _ := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.since, c.speed = now, time.Now(), speed
}
