// Package flow decides how bytes move between two peers: how many frames leave in
// one write, how much may wait for a reader, and how much a pipe holds.
package flow

import "time"

// A Pace says when frames that were handled are sent, though others are there
// already to be handled. Frames leave together because a write costs more than they
// do; but where layers make them dear, what is ready would wait for the rest of
// the batch, and the peer would have nothing to do meanwhile. The zero value is ready.
type Pace struct {
	n     int // frames since the last flush
	most  int // frames that may wait; 0 before it is known what they cost
	began time.Time
}

const (
	// maxWait is about how long a frame that is ready waits for others.
	maxWait = 80 * time.Microsecond
	// fewFrames is how many frames are sent together at least, whatever they cost.
	fewFrames = 4
	// paceSample is how many frames tell what one costs.
	paceSample = 8
)

// Due counts a frame that was handled, and reports whether it is time to send. The
// clock is read for the second frame of a batch and for the last: one that is alone
// costs nothing.
func (p *Pace) Due() bool {
	p.n++
	if p.n == 2 {
		p.began = time.Now()
	}
	return p.most > 0 && p.n >= p.most
}

// Sent begins the count again, after a flush, and learns from the frames before it.
func (p *Pace) Sent() {
	if p.n >= paceSample || p.n > 2 && p.n >= p.most && p.most > 0 {
		if each := time.Since(p.began) / time.Duration(p.n-1); each > 0 {
			p.most = max(fewFrames, int(maxWait/each))
		}
	}
	p.n = 0
}
