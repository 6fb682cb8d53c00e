package revive

import (
	"context"
	"time"
)

// pingTime is how long a server that seems to hang may take to answer a ping.
const pingTime = 10 * time.Second

// hangChecks is how often the server is checked during Policy.Hang. So a server is ended up to an eighth
// of that time late.
const hangChecks = 8

// watchHang ends a server that has written nothing for Policy.Hang while calls were in
// flight, and that does not answer a ping either (R17). The modern era has no ping.
func (v *Supervisor) watchHang(ctx context.Context, l *Link) {
	check := time.Tick(v.policy.Hang / hangChecks)
	reads, since := l.reads.Load(), time.Now()
	for {
		select {
		case <-check:
		case <-l.Ended():
			return
		case <-ctx.Done():
			return
		}
		// Anything that the server writes is a sign of life. Reads are counted and not lines, because it
		// may take long to write one.
		if n := l.reads.Load(); n != reads || !v.relay.Awaits(nil) || !v.MayRevive() {
			reads, since = n, time.Now()
			continue
		}
		if time.Since(since) < v.policy.Hang || v.answersPing(ctx, l, reads) {
			continue
		}
		if ctx.Err() == nil {
			v.o.Log.Warn("the server does not answer: it is stopped and started again", "silent", time.Since(since))
			l.stop()
		}
		return
	}
}

// answersPing pings the server and reports whether it writes anything within pingTime.
// reads is the number of reads before the ping.
func (v *Supervisor) answersPing(ctx context.Context, l *Link, reads int64) bool {
	if _, legacy := v.record.Initialize(); !legacy {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	v.askReady(ctx, "ping", nil)
	return l.reads.Load() != reads // with an error as well, or with another message
}
