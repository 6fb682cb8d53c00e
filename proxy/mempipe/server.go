package mempipe

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrKilled is the error of a Server that does not end when its input has ended.
var ErrKilled = errors.New("signal: killed")

// grace is how long a stopped server may take to end by itself.
const grace = 1500 * time.Millisecond

// A Server is a server in memory. It implements proxy.Upstream, the server that
// package proxy relays to.
type Server struct {
	In, Out *Pipe // the relay writes to In and reads from Out

	stopping chan struct{} // closed when the relay has closed In
	gone     chan struct{} // closed when the server has ended
	end      sync.Once     // closes In
	exit     sync.Once     // closes gone
	err      error         // set before gone is closed
}

// NewServer returns a server whose pipes have a capacity of max bytes each; 0 means
// unlimited. It runs until Exit is called.
func NewServer(max int) *Server {
	return &Server{In: New(max), Out: New(max), stopping: make(chan struct{}), gone: make(chan struct{})}
}

// Serve returns a server that calls run on a new goroutine. It ends when run returns,
// with the error of run.
func Serve(run func(in io.Reader, out io.Writer) error) *Server {
	s := NewServer(0)
	go func() { s.Exit(run(s.In, s.Out)) }()
	return s
}

// Stdin returns the write end of the server's input.
func (s *Server) Stdin() io.WriteCloser { return stdin{s} }

// Stdout returns the read end of the server's output.
func (s *Server) Stdout() io.Reader { return s.Out }

// Stop closes the server's input and waits until the server has ended. If the server
// does not end by itself, Stop ends it after 1.5 s with ErrKilled.
func (s *Server) Stop() {
	s.closeIn()
	select {
	case <-s.gone:
	case <-time.After(grace):
		s.Exit(ErrKilled)
	}
}

// Wait waits until the server has ended, and returns the error of the first Exit.
func (s *Server) Wait() error {
	<-s.gone
	return s.err
}

// Stopping returns a channel that is closed when the server's input has ended.
func (s *Server) Stopping() <-chan struct{} { return s.stopping }

// Exit ends the server, unless it has already ended. It closes the pipes as the end of
// a process does. Wait returns err, which is nil for a clean exit.
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
