// Package hangup decides how long a session goes on whose client has closed its end: while the
// client waits for answers, and while what it said is still on its way to the server.
package hangup

import "time"

const (
	// stallTime is how long a session continues without progress after the client has hung up. An
	// upstream has the same time after the end of its input.
	stallTime = 1500 * time.Millisecond
	// unseenTime is how long a client that has closed its end may wait for answers where nothing
	// tells whether it still reads.
	unseenTime = time.Minute
	// stuckTime is how long it may not read what it is sent.
	stuckTime = 10 * time.Second
	// lookTime is how often is looked whether it reads.
	lookTime = 250 * time.Millisecond
)

// A Session is a session as this package sees it.
type Session interface {
	// Unanswered reports whether the client waits for the answer to a call.
	Unanswered() bool
	// Settled returns a channel that is closed when all calls are answered.
	Settled() <-chan struct{}
	// Stuck returns a number for the write to the client that is under way, 0 if there is none.
	Stuck() int64
	// Moved returns how many lines and chunks were written to the upstream.
	Moved() int64
	// Holds reports whether a layer holds back a frame of the client.
	Holds() bool
}

// Reads reports whether a client that closed its end at the time since may still read. seen tells;
// it is nil where nothing does.
func Reads(seen func() bool, since time.Time) bool {
	if seen != nil {
		return seen()
	}
	return time.Since(since) < unseenTime
}

// AwaitAnswers returns when a client that has closed its end no longer waits for answers, or over
// is closed.
func AwaitAnswers(s Session, seen func() bool, over <-chan struct{}) {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	begun := time.Now()
	moved, stuck := begun, int64(0)
	for {
		settled := s.Settled()
		if !s.Unanswered() || !Reads(seen, begun) || time.Since(moved) > stuckTime {
			return
		}
		select {
		case <-settled:
		case <-look.C:
			if now := s.Stuck(); now == 0 || now != stuck {
				moved, stuck = time.Now(), now
			}
		case <-over:
			return
		}
	}
}

// AwaitStall returns when gone says that the client has hung up, and nothing of what it has said
// gets to an upstream that does not read. As long as the upstream reads, a layer holds a frame back
// or the client waits for answers, that is no stall. It reports false if over or ending is closed
// before.
func AwaitStall(s Session, gone <-chan struct{}, seen func() bool, over, ending <-chan struct{}) bool {
	select {
	case <-gone:
	case <-ending:
		return false
	}
	t := time.NewTicker(stallTime)
	defer t.Stop()
	begun := time.Now()
	for moved := s.Moved(); ; moved = s.Moved() {
		select {
		case <-over:
			return false
		case <-ending:
			return false
		case <-t.C:
		}
		if s.Moved() == moved && !s.Holds() && !(s.Unanswered() && Reads(seen, begun)) {
			return true
		}
	}
}
