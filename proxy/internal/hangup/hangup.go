// Package hangup decides how long a session goes on whose client has closed its end: while the
// client waits for answers, and while what it said is still on its way to the server.
package hangup

import "time"

const (
	// stallTime is how long a session continues without progress after the client has hung up. An
	// upstream has the same time after the end of its input.
	stallTime = 1500 * time.Millisecond
	// longestWait is how long attache waits for answers to a client that has closed its end. They
	// may never come: a server may have asked the client for something that it can no longer send.
	// unseenWait is the same where the system does not tell whether the client still reads.
	longestWait = time.Hour
	unseenWait  = time.Minute
	// lookTime is how often attache looks whether the client reads.
	lookTime = 250 * time.Millisecond
)

// A Session is a session as this package sees it.
type Session interface {
	// Unanswered reports whether the client waits for the answer to a call.
	Unanswered() bool
	// Settled returns a channel that is closed when all calls are answered.
	Settled() <-chan struct{}
	// Moved returns how many lines and chunks were written to the upstream.
	Moved() int64
	// Holds reports whether a layer holds back a frame of the client.
	Holds() bool
}

// reads reports whether a client that closed its end at the time since may still read. seen asks
// the system; it is nil where the system does not tell.
func reads(seen func() bool, since time.Time) bool {
	if seen == nil {
		return time.Since(since) < unseenWait
	}
	return time.Since(since) < longestWait && seen()
}

// AwaitAnswers returns when a client that has closed its end no longer waits for answers, or over
// is closed.
func AwaitAnswers(s Session, seen func() bool, over <-chan struct{}) {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	begun := time.Now()
	for {
		settled := s.Settled()
		if !s.Unanswered() || !reads(seen, begun) {
			return
		}
		select {
		case <-settled:
		case <-look.C:
		case <-over:
			return
		}
	}
}

// AwaitStall waits until gone says that the client has hung up, and an upstream that does not read
// keeps what the client has said from getting there. There is no stall as long as the upstream
// reads, a layer holds a frame back, or the client waits for answers. The result is false if over
// or ending is closed before a stall.
func AwaitStall(s Session, gone <-chan struct{}, seen func() bool, over, ending <-chan struct{}) bool {
	select {
	case <-gone:
	case <-ending:
		return false
	}
	t := time.NewTicker(stallTime)
	defer t.Stop()
	begun := time.Now()
	for moved := s.Moved(); ; {
		select {
		case <-over:
			return false
		case <-ending:
			return false
		case <-t.C:
		}
		switch now := s.Moved(); {
		case s.Holds():
			moved = -1 // what is held back has all the time when it goes on
		case now == moved && !(s.Unanswered() && reads(seen, begun)):
			return true
		default:
			moved = now
		}
	}
}
