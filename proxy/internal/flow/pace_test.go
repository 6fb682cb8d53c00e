package flow

import (
	"testing"
	"testing/synctest"
	"time"
)

// handle handles a batch of frames that take the time cost each. It returns how many were written
// together.
func (p *Pace) handle(frames int, cost time.Duration) (flushes []int) {
	since := 0
	for i := range frames {
		time.Sleep(cost)
		since++
		if p.Due() || i == frames-1 {
			p.Sent()
			flushes = append(flushes, since)
			since = 0
		}
	}
	return flushes
}

// TestPace handles batches of frames that each take some time, and counts how many are sent together
// once Pace has measured that time.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		cost     time.Duration // of one frame
		together int
	}{
		{time.Microsecond, 80},
		{5 * time.Microsecond, 16},
		{100 * time.Microsecond, fewFrames},
		{time.Second, fewFrames},
	} {
		synctest.Test(t, func(t *testing.T) {
			var p Pace
			if got := p.handle(60, c.cost); len(got) != 1 {
				t.Errorf("%v: %v before the cost was measured", c.cost, got)
			}
			p.handle(1, c.cost)
			p.handle(2, c.cost)
			got := p.handle(500, c.cost)
			if got[0] < c.together/2 || got[0] > c.together+c.together/8 {
				t.Errorf("%v: %v frames together, want about %d", c.cost, got[0], c.together)
			}
		})
	}
}

// The cost is measured with few frames, and again with each full batch: layers may become slower or faster.
func TestPaceLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		for i, step := range []struct {
			cost           time.Duration
			frames, writes int
		}{
			{time.Second, paceSample - 1, 1},
			{time.Second, fewFrames + 1, 1}, // not measured yet
			{time.Second, paceSample, 1},
			{time.Second, fewFrames + 1, 2},
			{time.Second, fewFrames - 1, 1},
			{time.Microsecond, 2 * fewFrames, 2}, // 4 and 4: after the first, frames are known to be cheap
			{time.Microsecond, 50, 1},
			{time.Second, 50, 1},
			{time.Microsecond, 2 * fewFrames, 2},
		} {
			if got := p.handle(step.frames, step.cost); len(got) != step.writes {
				t.Errorf("step %d: %d frames were written as %v", i, step.frames, got)
			}
		}
		var quick Pace
		quick.handle(paceSample, time.Microsecond)
		if got := quick.handle(200, time.Microsecond)[0]; got < 75 || got > 100 {
			t.Errorf("%d frames of a microsecond were written together", got)
		}
	})
}
