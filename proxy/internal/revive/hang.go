package revive

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// pingTime is how long a server that seems to hang may take to answer a ping.
const pingTime = 10 * time.Second

// hangLooks is how often it is looked whether the server hangs, in the time that a hang
// takes.
const hangLooks = 8

// A countingReader counts the reads of a server's output that return something.
type countingReader struct {
	io.Reader
	n *atomic.Int64
}

// Read implements io.Reader.
func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		r.n.Add(1)
	}
	return n, err
}

// watchHang ends a server that has not said a word for as long as the policy allows while
// calls were in flight, and that does not answer a ping either (R17). The modern era has
// no ping.
func (v *Supervisor) watchHang(ctx context.Context, l *Link) {
	look := time.Tick(v.policy.Hang / hangLooks)
	said, since := l.said.Load(), time.Now()
	for {
		select {
		case <-look:
		case <-l.Ended():
			return
		case <-ctx.Done():
			return
		}
		if n := l.said.Load(); n != said || !v.relay.Awaits(nil) || !v.MayRevive() {
			said, since = n, time.Now()
			continue
		}
		if time.Since(since) < v.policy.Hang || v.answersPing(ctx, l, said) {
			continue
		}
		if ctx.Err() == nil {
			v.o.Log.Warn("the server hangs: it is ended, and started again", "silent", time.Since(since))
			l.stop()
		}
		return
	}
}

// answersPing asks the server for a sign of life, and reports whether there is one within
// pingTime. Any byte is one.
func (v *Supervisor) answersPing(ctx context.Context, l *Link, said int64) bool {
	if _, legacy := v.record.Initialize(); !legacy {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	v.askReady(ctx, "ping", nil)
	return l.said.Load() != said
}
