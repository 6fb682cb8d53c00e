package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// idle is how long attache keeps an unused session. On a busy machine a client may get no processor
// for many seconds, and its session must not end meanwhile.
const idle = time.Minute

// A program is a process that can be killed and restarted.
type program struct {
	run     *run
	name    string
	address string
	admin   string // the address for operators, of a front
	argv    []string
	place   *place
	mu      sync.Mutex
	cmd     *exec.Cmd // nil if it is not running
}

// start starts the program and waits until it listens.
func (p *program) start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.run.dir, p.name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.CommandContext(context.Background(), p.argv[0], p.argv[1:]...)
	machine.OwnGroup(cmd)
	cmd.Env, cmd.Stderr = p.run.env, log
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd = cmd
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := machine.AwaitListener(ctx, p.address); err != nil {
		return fmt.Errorf("%s does not listen on %s: see its log: %w", p.name, p.address, err)
	}
	return nil
}

// end sends the program a signal and waits until it has ended.
func (p *program) end(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(s)
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	if !late.Stop() {
		p.run.account.fault("%s did not end within %v of %v", p.name, patience, s)
	}
	p.cmd = nil
}

// restart kills the program and starts it again.
func (p *program) restart(ctx context.Context) {
	p.run.account.count(p.name + " killed")
	restarted := p.place.die()
	p.end(syscall.SIGKILL)
	if err := p.start(ctx); err != nil && ctx.Err() == nil {
		p.run.account.fault("%v", err)
	}
	restarted()
}

func (p *program) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

func (p *program) url() string { return "http://" + p.address + "/mcp" }

func (r *run) config() string { return filepath.Join(r.dir, "config", "stdio.yaml") }

// newFront returns a front that is not started yet.
func (r *run) newFront(name string) *program {
	f := &program{run: r, name: name, address: machine.FreeAddress(), admin: machine.FreeAddress(), place: &place{}}
	f.argv = []string{r.o.Attache, "serve", "--config", f.config(), "--listen", f.address}
	return f
}

func (p *program) config() string { return filepath.Join(p.run.dir, "config", p.name+".yaml") }

func (r *run) start(ctx context.Context) error {
	r.remote = &program{run: r, name: "remote server", address: machine.FreeAddress(), place: &place{}}
	r.remote.argv = []string{r.self, HTTP, r.remote.address, r.ledger}
	r.steady, r.shaky = r.newFront("steady front"), r.newFront("shaky front")
	if err := r.configure(0); err != nil {
		return err
	}
	for _, p := range r.programs() {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) programs() []*program { return []*program{r.remote, r.steady, r.shaky} }

func (r *run) stop() {
	for _, p := range r.programs() {
		p.end(syscall.SIGTERM)
	}
}

// configure writes the configurations. Each version has other rules, none of which affects a
// call of a client.
func (r *run) configure(version int) error {
	rules := fmt.Sprintf("arguments:\n  - {tools: [none_%d], argument: workspace, value: '\"/\"'}\naccess:\n  rules:\n    - {tools: [never_%d], deny: true}\n", version, version)
	files := map[string]string{r.config(): rules}
	for _, f := range []*program{r.steady, r.shaky} {
		files[f.config()] = rules + fmt.Sprintf("serve:\n  admin: %s\n  idle: %v\n  drain: 1s\n  limits: {per_principal: 5000, sessions: 5000, children: 2000}\nservers:\n  local: {server: {command: [%q, %q, %q]}}\n  remote: {server: {url: %q}}\n",
			f.admin, idle, r.self, Stdio, r.ledger, r.remote.url())
	}
	for path, text := range files {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	return nil
}

// chaos disturbs attache until ctx is done.
func (r *run) chaos(ctx context.Context) {
	rng := rand.New(rand.NewPCG(r.o.Seed, 0))
	for version := 1; machine.Pause(ctx, time.Duration(1000+rng.IntN(9000))*time.Millisecond); version++ {
		switch rng.IntN(4) {
		case 0:
			r.shaky.restart(context.WithoutCancel(ctx))
		case 1:
			r.remote.restart(context.WithoutCancel(ctx))
		case 2:
			r.account.count("configurations changed")
			if err := r.configure(version); err != nil {
				r.account.fault("%v", err)
			}
		case 3:
			r.account.count("configurations read again on SIGHUP")
			machine.Signal(r.steady.pid(), syscall.SIGHUP)
		}
	}
}

// get reads a page that a front has for operators.
func (f *program) get(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.admin+path, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Close = true
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// marked reports whether a process belongs to this run.
func (r *run) marked(pid int) bool {
	if pid <= 1 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(b, []byte(r.mark+"\x00"))
}
