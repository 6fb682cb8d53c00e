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
		name   string
		ends   bool // ends when its input ends
		output string
		err    error
	}{
		{"ends with its input", true, "hello", failed},
		{"does not end", false, "", ErrKilled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				s := Serve(func(in io.Reader, out io.Writer) error {
					if !c.ends {
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
					t.Errorf("the server ended with %v, want %v", err, c.err)
				}
				if output, err := io.ReadAll(s.Stdout()); string(output) != c.output || err != nil {
					t.Errorf("the server wrote %q, %v, want %q", output, err, c.output)
				}
				if _, err := io.WriteString(s.Stdin(), "more"); err == nil {
					t.Error("a write after the end succeeded")
				}
			})
		})
	}
}
