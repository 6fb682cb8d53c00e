package child

import (
	"context"
	"errors"
	"io"
	"strings"
)

// An Upstream is a process that implements proxy.Upstream, the server that package
// proxy relays to.
type Upstream struct{ *Process }

// Upstream returns the process as the upstream of a relay. Start the process with a
// context that outlives that of the relay, because the relay stops it step by step:
//
//	Start: func(context.Context) (proxy.Upstream, error) {
//		p, err := child.Start(context.Background(), child.Options{Argv: argv, Env: env, Stderr: os.Stderr})
//		if err != nil {
//			return nil, err
//		}
//		return p.Upstream(), nil
//	},
func (p *Process) Upstream() Upstream { return Upstream{p} }

// Stdin returns the write end of the process's stdin.
func (u Upstream) Stdin() io.WriteCloser { return &u.Process.input }

// Stdout returns the read end of the process's stdout, to be read to its end.
func (u Upstream) Stdout() io.Reader { return u.Process.Stdout() }

// Stop stops the process as [Process.Stop] does, and waits until it is gone.
func (u Upstream) Stop() { u.Process.Stop(context.Background()) }

// Wait waits until the process is gone. The error describes how it ended, with the
// last lines of its stderr, which usually contain the reason. It is nil for exit
// status 0 and an empty stderr.
func (u Upstream) Wait() error {
	exit := u.Process.Wait()
	last := LastWords(u.Tail())
	if last != "" && u.opt.Hide != nil {
		last = u.opt.Hide(last)
	}
	if exit.Status() == 0 && last == "" {
		return nil
	}
	return errors.New(exit.String() + last)
}

// LastWords returns the last lines of a process's stderr, to be appended to a message
// about its end. It returns "" if there are none.
func LastWords(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	return "; its last words on stderr:\n" + strings.Join(tail, "\n")
}
