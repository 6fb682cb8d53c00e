package session

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A server is the other end of the relay: a process or a remote server.
type server interface {
	upstream() proxy.Upstream
	// signal takes a signal that attache was sent.
	signal(os.Signal)
	// status returns what attache exits with, when the server is gone.
	status() int
}

// A processServer is a server that attache has started.
type processServer struct{ *child.Process }

func (s processServer) upstream() proxy.Upstream { return s.Upstream() }
func (s processServer) signal(sig os.Signal)     { s.Signal(sig) }
func (s processServer) status() int              { return s.Wait().Status() }

// A remoteServer is a session with a remote server.
type remoteServer struct {
	*remote.Server

	mu       sync.Mutex
	signaled os.Signal
}

func (s *remoteServer) upstream() proxy.Upstream { return s.Server }

// signal ends the session, as a signal ends most programs.
func (s *remoteServer) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signaled = sig
	go s.Stop()
}

func (s *remoteServer) status() int {
	err := s.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig, ok := s.signaled.(syscall.Signal); ok {
		return 128 + int(sig)
	}
	if err != nil {
		return cli.ExitFailure
	}
	return 0
}

// A builtinServer is a server of attache's own, in this process.
type builtinServer struct{ *mempipe.Server }

func (s builtinServer) upstream() proxy.Upstream { return s.Server }
func (s builtinServer) signal(os.Signal)         { go s.Stop() }

func (s builtinServer) status() int {
	if s.Wait() != nil {
		return cli.ExitFailure
	}
	return 0
}

// startServer starts the server of the relay.
func (w *relay) startServer() (server, error) {
	if w.builtin != nil {
		return builtinServer{w.builtin()}, nil
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
		return &remoteServer{Server: s}, nil
	}
	if w.env == nil {
		w.env = w.conn.Environment(w.p.Env)
	}
	// Not the session's context: the server ends by the ladder, not at once.
	p, err := child.Start(context.Background(), child.Options{Argv: w.command, Env: w.env, Stderr: w.p.Stderr})
	if err != nil {
		return nil, err
	}
	if err := p.GuardErr(); err != nil {
		w.log.Debug("if attache is killed, the server or what it started may live on", "why", err)
	}
	w.log.Debug("server started", "command", p.Path(), "pid", p.Pid())
	return processServer{p}, nil
}

// findServer returns what is wrong with the command of a server that was never started.
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
