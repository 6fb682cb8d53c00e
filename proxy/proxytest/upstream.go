package proxytest

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/mempipe"
)

// errKilled is how a server ends that does not leave when its input does.
var errKilled = errors.New("signal: killed")

// killAfter is how long a stopped server has to leave by itself.
const killAfter = 1500 * time.Millisecond

// upstream is a server in memory, as the relay sees it.
type upstream struct {
	in, out *mempipe.Pipe
	once    sync.Once
	exited  chan struct{}
	how     error
}

// Stdin implements proxy.Upstream.
func (u *upstream) Stdin() io.WriteCloser { return u.in.Writer() }

// Stdout implements proxy.Upstream.
func (u *upstream) Stdout() io.Reader { return u.out }

// Stop implements proxy.Upstream.
func (u *upstream) Stop() {
	u.in.CloseWrite()
	select {
	case <-u.exited:
	case <-time.After(killAfter):
		u.exit(errKilled)
	}
}

// Wait implements proxy.Upstream.
func (u *upstream) Wait() error {
	<-u.exited
	return u.how
}

// exit ends the process, if it has not ended.
func (u *upstream) exit(how error) {
	u.once.Do(func() {
		u.how = how
		u.out.CloseWrite()
		u.in.CloseRead()
		close(u.exited)
	})
}
