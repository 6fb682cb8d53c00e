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

// A server is the other end of the relay.
type server interface {
	upstream() proxy.Upstream
	// signal handles a signal that attache received.
	signal(os.Signal)
	// status waits for the end of the server and returns the exit status for attache.
	status() int
}

// A processServer is a process that attache has started.
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

// A builtinServer is a server in this process.
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
	// Not the context of the session, which would kill the server without a grace period.
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
