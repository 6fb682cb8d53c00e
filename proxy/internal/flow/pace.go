// Package flow decides how bytes move between two peers: how many frames leave in
// one write, how much may wait for a reader, and how much a pipe holds.
package flow

import "time"

// A Pace says when to write the frames that were handled while others are waiting to be handled.
// Frames are written together because a write costs more than handling a frame. If layers make frames
// expensive, though, the first frames of a batch would wait for the rest, and the peer would be idle.
// The zero value is ready to use.
type Pace struct {
	n     int // frames since the last flush
	most  int // frames that may wait; 0 before their cost is known
	began time.Time
}

const (
	// maxWait is about how long a handled frame waits for others.
	maxWait = 80 * time.Microsecond
	// fewFrames is the smallest value of most, whatever frames cost.
	fewFrames = 4
	// paceSample is how many frames are timed to learn the cost of one.
	paceSample = 8
)

// Due counts a frame that was handled, and reports whether to write now. The clock is read for the
// second frame of a batch and at its end, so a frame alone costs nothing.
func (p *Pace) Due() bool {
	p.n++
	if p.n == 2 {
		p.began = time.Now()
	}
	return p.most > 0 && p.n >= p.most
}

// Sent starts a new batch after a flush, and learns the cost of frames from the batch before.
func (p *Pace) Sent() {
	// A batch of few frames tells little. But while frames are expensive, full batches are small, and
	// only they can show that frames have become cheap.
	if p.n >= paceSample || p.n > 2 && p.n >= p.most && p.most > 0 {
		if each := time.Since(p.began) / time.Duration(p.n-1); each > 0 {
			p.most = max(fewFrames, int(maxWait/each))
		}
	}
	p.n = 0
}
