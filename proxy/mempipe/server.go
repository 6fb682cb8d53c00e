package mempipe

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrKilled is how a Server ends that does not leave when its input has ended.
var ErrKilled = errors.New("signal: killed")

// grace is how long a stopped server has to leave by itself.
const grace = 1500 * time.Millisecond

// A Server is a server in memory, in the form in which package proxy takes the
// server that it relays to (proxy.Upstream).
type Server struct {
	In, Out *Pipe // what the relay writes to the server, and reads from it

	stopping chan struct{} // closed when In has ended
	gone     chan struct{} // closed when the server is
	end      sync.Once
	exit     sync.Once
	err      error // how it ended; written before gone is closed
}

// NewServer returns a server whose pipes hold up to max bytes each; 0 stands for any
// number. It runs until somebody calls Exit.
func NewServer(max int) *Server {
	return &Server{In: New(max), Out: New(max), stopping: make(chan struct{}), gone: make(chan struct{})}
}

// Serve returns a server that is run, on a goroutine of its own: it ends when run
// returns, with the error of run.
func Serve(run func(in io.Reader, out io.Writer) error) *Server {
	s := NewServer(0)
	go func() { s.Exit(run(s.In, s.Out)) }()
	return s
}

// Stdin returns what the relay writes to.
func (s *Server) Stdin() io.WriteCloser { return stdin{s} }

// Stdout returns what the relay reads from.
func (s *Server) Stdout() io.Reader { return s.Out }

// Stop ends the server's input and returns when the server is gone. One that does
// not leave by itself is gone after 1.5 s, with ErrKilled.
func (s *Server) Stop() {
	s.closeIn()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-s.gone:
	case <-t.C:
		s.Exit(ErrKilled)
	}
}

// Wait returns when the server is gone, with what Exit was given first.
func (s *Server) Wait() error {
	<-s.gone
	return s.err
}

// Stopping returns a channel that is closed when the server's input has ended.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

// Exit ends the server, unless it has ended: its pipes are closed as those of a
// process would be. err is for Wait, nil for a clean exit.
func (s *Server) Exit(err error) {
	s.exit.Do(func() {
		s.err = err
		s.Out.CloseWrite()
		s.In.CloseRead()
		close(s.gone)
	})
}

func (s *Server) closeIn() {
	s.end.Do(func() {
		s.In.CloseWrite()
		close(s.stopping)
	})
}

type stdin struct{ s *Server }

func (w stdin) Write(b []byte) (int, error) { return w.s.In.Write(b) }

// TryWrite implements wire.TryWriter.
func (w stdin) TryWrite(b []byte) (written bool, err error) { return w.s.In.TryWrite(b) }

func (w stdin) Close() error {
	w.s.closeIn()
	return nil
}
