package mempipe

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

func TestServer(t *testing.T) {
	failed := errors.New("exit status 3")
	for _, c := range []struct {
		name  string
		leave bool // when its input ends
		said  string
		err   error
	}{
		{"leaves with its input", true, "hello", failed},
		{"does not leave", false, "", ErrKilled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				s := Serve(func(in io.Reader, out io.Writer) error {
					if !c.leave {
						<-release
					}
					io.Copy(out, in)
					return failed
				})
				io.WriteString(s.Stdin(), "hello")
				s.Stop()
				s.Stop()
				<-s.Stopping()
				if err := s.Wait(); err != c.err {
					t.Errorf("it ended with %v, want %v", err, c.err)
				}
				if said, err := io.ReadAll(s.Stdout()); string(said) != c.said || err != nil {
					t.Errorf("it said %q, %v, want %q", said, err, c.said)
				}
				if _, err := io.WriteString(s.Stdin(), "more"); err == nil {
					t.Error("it takes input when it is gone")
				}
			})
		})
	}
}
