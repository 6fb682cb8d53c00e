package child

import (
	"context"
	"errors"
	"io"
	"strings"
)

// An Upstream is a process in the form in which package proxy takes the server that
// it relays to (proxy.Upstream).
type Upstream struct{ *Process }

// Upstream returns the process as the upstream of a relay. Start it with a context
// that outlives the relay's, which ends it by the ladder and not at once:
//
//	Start: func(context.Context) (proxy.Upstream, error) {
//		p, err := child.Start(context.Background(), child.Options{Argv: argv, Env: env, Stderr: os.Stderr})
//		if err != nil {
//			return nil, err
//		}
//		return p.Upstream(), nil
//	},
func (p *Process) Upstream() Upstream { return Upstream{p} }

// Stdin returns our end of the process's stdin.
func (u Upstream) Stdin() io.WriteCloser { return &u.Process.input }

// Stdout returns our end of the process's stdout, to be read to its end.
func (u Upstream) Stdout() io.Reader { return u.Process.Stdout() }

// Stop ends the process, gently first, and returns when it is gone.
func (u Upstream) Stop() { u.Process.Stop(context.Background()) }

// Wait returns when the process is gone. The error says how it ended, with the last
// lines of its stderr, which most often have the reason; nil for exit status 0 without
// a word.
func (u Upstream) Wait() error {
	exit := u.Process.Wait()
	last := LastWords(u.Tail())
	if exit.Status() == 0 && last == "" {
		return nil
	}
	return errors.New(exit.String() + last)
}

// LastWords returns the last lines of a process's stderr as the end of a message that
// says how it ended, "" if there are none.
func LastWords(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	return "; its last words on stderr:\n" + strings.Join(tail, "\n")
}
