// Package soak uses attache for a long time while it disturbs it: clients of every kind call over
// stdio and HTTP, in sessions with and without a handshake; servers and fronts are killed,
// servers stop for a while or never answer, clients read slowly, cancel, and go away; the
// configuration changes.
//
// Every request has a unique number. Its answer must be its own result, or an error if a process
// on the way was killed. The server writes the calls that it executes to a ledger, which must not
// have a call twice. When all clients have gone, attache must have no more processes,
// descriptors, goroutines, files and rows than before, and its memory must not have grown.
//
// The steps are random and follow from the seed; their timing depends on the machine.
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// Options are the options of [Run].
type Options struct {
	Duration time.Duration
	Seed     uint64
	Attache  string   // the program
	Env      []string // of every process
	Out, Log io.Writer
}

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
	pending sync.WaitGroup // servers that stop for a while
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
	for _, pid := range r.processes() {
		machine.Signal(pid, syscall.SIGKILL)
	}
	if err == nil && len(r.account.faults) == 0 {
		return os.RemoveAll(dir)
	}
	fmt.Fprintf(o.Log, "soak: logs are in %s\n", dir)
	if err == nil {
		err = errors.New("a bound is broken: see the faults above")
	}
	return err
}

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
