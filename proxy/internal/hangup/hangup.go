// Package hangup decides how long a session continues after its client has closed its end: while
// the client waits for answers, and while its messages are still on their way to the server.
package hangup

import "time"

const (
	// stallTime is how long a session continues without progress after the client has hung up. An
	// upstream has the same time after the end of its input.
	stallTime = 1500 * time.Millisecond
	// longestWait is how long attache waits for answers after the client has closed its end. They
	// may never come: a server may have requested something that the client can no longer send.
	// unseenWait is the same for systems that cannot report whether the client still reads.
	longestWait = time.Hour
	unseenWait  = time.Minute
	// checkTime is the interval between checks whether the client still reads.
	checkTime = 250 * time.Millisecond
	// A server does not wait for the client if freeChecks checks in a row, freeTime apart, find no write that waits.
	// One check could come between two writes to a client that reads slowly.
	freeTime   = 10 * time.Millisecond
	freeChecks = 5
)

// A Session has the methods of a session that this package needs.
type Session interface {
	// Unanswered reports whether the client waits for the answer to a call.
	Unanswered() bool
	// Settled returns a channel that is closed when all calls are answered.
	Settled() <-chan struct{}
	// Written returns a channel that is closed when all answers so far are written to the client. Those to
	// calls that are settled may still be gathered.
	Written() <-chan struct{}
	// Moved returns how many lines and chunks were written to the upstream.
	Moved() int64
	// Holds reports whether a layer holds back a frame of the client.
	Holds() bool
	// Blocked reports whether a message of the client waits for another peer: for the upstream to read, for
	// the answer to a call, or for the client to read.
	Blocked() bool
}

// mayRead reports whether a client that closed its end at the time since may still read. reads
// reports what the system knows about that; it is nil if the system cannot tell.
func mayRead(reads func() bool, since time.Time) bool {
	if reads == nil {
		return time.Since(since) < unseenWait
	}
	return time.Since(since) < longestWait && reads()
}

// AwaitAnswers returns when a client that has closed its end no longer waits for answers, and those that
// it got are written, or over is closed. reads reports whether the client still reads; it is nil if the system
// cannot tell.
func AwaitAnswers(s Session, reads func() bool, over <-chan struct{}) {
	check := time.Tick(checkTime)
	start := time.Now()
	var written <-chan struct{}
	for mayRead(reads, start) {
		settled := s.Settled()
		switch {
		case s.Unanswered():
			written = nil
		case written == nil:
			written = s.Written()
			fallthrough
		default:
			settled = nil
		}
		select {
		case <-written:
			return
		case <-settled:
		case <-check:
		case <-over:
			return
		}
	}
}

// AwaitReader returns when a server whose input has ended can be ended: when it has written all its output,
// which closes ended, when it does not wait for the client to read, or when over is closed. blocked reports
// whether a write to the client is waiting. reads is that of AwaitAnswers.
func AwaitReader(blocked, reads func() bool, ended, over <-chan struct{}) {
	start, wait, free := time.Now(), freeTime, 0
	for free < freeChecks && mayRead(reads, start) {
		select {
		case <-ended:
			return
		case <-over:
			return
		case <-time.After(wait):
		}
		if blocked() {
			wait, free = min(2*wait, checkTime), 0
		} else {
			wait, free = freeTime, free+1
		}
	}
}

// AwaitStall waits for a stall: the client has hung up, which closes gone, and an upstream that does
// not read blocks its messages. There is no stall as long as the upstream reads, a layer holds a frame
// back, the client waits for answers, or its messages are still being read, which takes long on a busy
// machine. AwaitStall returns false if over or ending is closed before a stall. reads is that of
// AwaitAnswers.
func AwaitStall(s Session, gone <-chan struct{}, reads func() bool, over, ending <-chan struct{}) bool {
	select {
	case <-gone:
	case <-ending:
		return false
	}
	tick := time.Tick(stallTime)
	start := time.Now()
	for moved := s.Moved(); ; {
		select {
		case <-over:
			return false
		case <-ending:
			return false
		case <-tick:
		}
		switch now := s.Moved(); {
		case s.Holds() || !s.Blocked():
			moved = -1 // the frame gets the full time after that
		case now == moved && !(s.Unanswered() && mayRead(reads, start)):
			return true
		default:
			moved = now
		}
	}
}
