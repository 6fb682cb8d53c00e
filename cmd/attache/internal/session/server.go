package session

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A server is the other end of the relay.
type server struct {
	upstream proxy.Upstream
	// signal handles a signal that attache received.
	signal func(os.Signal)
	// status waits for the end of the server and returns the exit status for attache.
	status func() int
}

// processServer returns the server for a process that attache has started.
func (w *relay) processServer(p *child.Process) *server {
	status := sync.OnceValue(func() int {
		exit := p.Wait()
		if n := p.Dropped(); n > 0 {
			w.log.Warn("a part of what the server wrote to stderr was dropped, because nobody read it", "bytes", n)
		}
		return exit.Status()
	})
	return &server{p.Upstream(), p.Signal, status}
}

// remoteServer returns the server for a session with a remote server. A signal ends the session, as it
// ends most programs.
func remoteServer(r *remote.Server) *server {
	var signaled atomic.Int64 // the exit status after a signal
	signal := func(sig os.Signal) {
		if n, ok := sig.(syscall.Signal); ok {
			signaled.Store(128 + int64(n))
		}
		go r.Stop()
	}
	status := func() int {
		err := r.Wait()
		if n := signaled.Load(); n != 0 {
			return int(n)
		}
		return statusOf(err)
	}
	return &server{r, signal, status}
}

// statusOf returns the exit status for attache if its server, which is not a process, ended with err.
func statusOf(err error) int {
	if err != nil {
		return cli.ExitFailure
	}
	return 0
}

func (w *relay) startServer() (*server, error) {
	if w.builtin != nil {
		m := w.builtin()
		return &server{m, func(os.Signal) { go m.Stop() }, func() int { return statusOf(m.Wait()) }}, nil
	}
	if config.IsURL(w.command) {
		o, err := remoteserver.Options(w.p, w.s, w.log)
		if err != nil {
			return nil, err
		}
		s, err := remote.Start(o)
		if err != nil {
			return nil, err
		}
		w.log.Debug("a session with the remote server begins", "address", config.ShownAddress(o.URL))
		return remoteServer(s), nil
	}
	if w.env == nil {
		w.env = w.conn.Environment(w.p.Env)
	}
	// The context of the session would kill the server without a grace period, so Start gets another.
	p, err := child.Start(context.Background(), child.Options{
		Argv: w.command, Env: w.env, Stderr: logging.NewStderr(w.p.Stderr).Beside(""), Hide: logging.Hide(w.log),
	})
	if err != nil {
		return nil, err
	}
	if err := p.GuardErr(); err != nil {
		w.log.Debug("if attache is killed, the server or what it started may live on", "why", err)
	}
	w.log.Debug("server started", "command", p.Path(), "pid", p.Pid())
	return w.processServer(p), nil
}

// findServer returns an error if the server, which was not started, could not be.
func (w *relay) findServer() error {
	if w.builtin != nil {
		return nil
	}
	if config.IsURL(w.command) {
		_, err := remoteserver.Options(w.p, w.s, w.log)
		return err
	}
	_, err := child.Find(child.Options{Argv: w.command, Env: w.p.Env})
	return err
}
