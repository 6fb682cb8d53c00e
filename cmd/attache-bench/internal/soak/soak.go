//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrBroken is returned when a bound is broken. The report, already written, lists the faults.
var ErrBroken = errors.New("a bound is broken: see the faults above")

// idle is how long attache keeps an unused session. On a busy machine a client may get no processor
// for many seconds, and its session must not end meanwhile.
const idle = time.Minute

// A run is one run of the soak.
type run struct {
	o       Options
	dir     string
	self    string // this program
	env     []string
	mark    string // an entry in the environment of every process
	ledger  string
	account *account
	steady  *program       // a front that is never killed
	shaky   *program       // a front
	remote  *program       // the server over HTTP
	pending sync.WaitGroup // for later
	samples []sample
}

// Run runs the soak and writes its report.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "attache-soak-")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r := &run{o: o, dir: dir, self: self, account: newAccount(o.Log), ledger: filepath.Join(dir, "ledger")}
	r.mark = "SOAK_RUN=" + filepath.Base(dir)
	r.env = append(o.Env, r.mark, "XDG_CONFIG_HOME="+dir+"/config", "XDG_STATE_HOME="+dir+"/state", "XDG_RUNTIME_DIR="+dir+"/run", "TMPDIR="+dir+"/tmp")
	fmt.Fprintf(o.Log, "soak: %v, -seed %d, in %s\n", o.Duration, o.Seed, dir)
	for _, name := range []string{"config", "state", "run", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	err = r.play(ctx)
	r.killAll()
	if err == nil && len(r.account.faults) == 0 {
		return os.RemoveAll(dir)
	}
	fmt.Fprintf(o.Log, "soak: logs are in %s\n", dir)
	if err == nil {
		err = ErrBroken
	}
	return err
}

// play runs all phases.
func (r *run) play(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	defer r.stop()
	fmt.Fprintln(r.o.Log, "soak: one session of each kind, for comparison")
	for d := 3 * time.Second; d < patience && !r.account.served(len(r.kinds()), 10); d *= 2 {
		r.clients(ctx, d, 1) // longer on a slow machine, so that each kind has caused its usual state before
	}
	before, err := r.rest(ctx, state{})
	if err != nil {
		return err
	}
	fmt.Fprintln(r.o.Log, "soak: load, and disturbances")
	loaded := time.Now()
	r.load(ctx)
	took := time.Since(loaded)
	fmt.Fprintln(r.o.Log, "soak: all clients have gone; waiting for what they left to go")
	after, err := r.rest(ctx, before)
	if err != nil {
		return err
	}
	live, err := r.steady.liveAtRest(ctx)
	if err != nil {
		return err
	}
	r.stop()
	r.leftovers()
	return r.report(took, before, after, live)
}

// load runs clients while chaos disturbs the servers and fronts.
func (r *run) load(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Duration)
	defer cancel()
	var background sync.WaitGroup
	background.Go(func() { r.chaos(ctx) })
	background.Go(func() { r.watch(ctx) })
	r.clients(ctx, r.o.Duration, 2)
	background.Wait()
	r.pending.Wait()
}

// clients runs n clients of each kind for a time.
func (r *run) clients(ctx context.Context, d time.Duration, n int) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var all sync.WaitGroup
	number := uint64(0)
	for range n {
		for _, c := range r.kinds() {
			number++
			c.run, c.rng = r, rand.New(rand.NewPCG(r.o.Seed, number))
			all.Go(func() {
				for ctx.Err() == nil {
					c.session(ctx)
				}
			})
		}
	}
	all.Wait()
}

// kinds returns a client of each kind.
func (r *run) kinds() (all []*client) {
	for _, modern := range []bool{false, true} {
		era := "legacy"
		if modern {
			era = "modern"
		}
		server := func(c *client) *client {
			c.server = &place{}
			c.places = append(c.places, c.server)
			return c
		}
		of := func(kind string, open opener, places ...*place) *client {
			return &client{kind: kind + ", " + era, modern: modern, open: open, places: places}
		}
		at := func(f *program, kind, path string, places ...*place) *client {
			c := of(kind, openHTTP("http://"+f.address+path), append(places, f.place)...)
			c.front = f.place
			return c
		}
		all = append(all,
			server(of("stdio", openStdio(append([]string{"--config", r.config(), "--"}, r.server()...)...))),
			of("stdio to HTTP", openStdio("--config", r.config(), "--", r.remote.url()), r.remote.place),
			server(at(r.steady, "HTTP to stdio", "/local")),
			at(r.steady, "HTTP to HTTP", "/remote", r.remote.place),
			server(at(r.shaky, "HTTP to stdio, front killed", "/local")),
			at(r.shaky, "HTTP to HTTP, front killed", "/remote", r.remote.place))
	}
	return all
}

// later runs do after d, and before the run ends.
func (r *run) later(d time.Duration, do func()) {
	r.pending.Go(func() {
		time.Sleep(d)
		do()
	})
}
