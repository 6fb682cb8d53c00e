package flow

import (
	"testing"
	"testing/synctest"
	"time"
)

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
			batch := func(frames int) (flushes []int) {
				since := 0
				for i := range frames {
					time.Sleep(c.cost)
					since++
					if p.Due() || i == frames-1 {
						p.Sent()
						flushes = append(flushes, since)
						since = 0
					}
				}
				return flushes
			}
			if got := batch(60); len(got) != 1 {
				t.Errorf("%v: %v before the cost was measured", c.cost, got)
			}
			batch(1)
			batch(2)
			got := batch(500)
			if got[0] < c.together/2 || got[0] > c.together+c.together/8 {
				t.Errorf("%v: %v frames together, want about %d", c.cost, got[0], c.together)
			}
		})
	}
}
