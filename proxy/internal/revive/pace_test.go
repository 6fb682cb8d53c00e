package revive

import (
	"testing"
	"time"
)

// TestPace computes the pace of servers that die repeatedly, each after the same uptime.
func TestPace(t *testing.T) {
	for _, row := range []struct {
		name    string
		up      time.Duration // 0 for a server that is never ready
		deaths  int
		delay   time.Duration // of the next start, plus or minus a fifth
		down    bool          // there is a crash loop
		givenUp bool
	}{
		{"the first death", 20 * time.Second, 1, 0, false, false},
		{"one that works for 20 s", 20 * time.Second, 100, 2500 * time.Millisecond, false, false},
		{"one that works for 50 s", 50 * time.Second, 100, 6250 * time.Millisecond, false, false},
		{"one that works for 60 s", 60 * time.Second, 100, 0, false, false},
		{"one that works for 5 s", 5 * time.Second, 500, 625 * time.Millisecond, true, false},
		{"the third early death", time.Second, 3, 500 * time.Millisecond, true, false},
		{"one that always dies early", time.Second, 15, 30 * time.Second, true, false},
		{"one that is never ready", 0, 15, 30 * time.Second, true, false},
		{"one that is never ready for 10 minutes", 0, 60, 30 * time.Second, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var p Pace
			now := time.Unix(1_800_000_000, 0)
			var delay time.Duration
			for range row.deaths {
				now = now.Add(max(delay, 0))
				ready := now
				if now = now.Add(row.up); row.up == 0 {
					ready = time.Time{}
				}
				p.Died(ready, now)
				delay = p.Delay(now)
			}
			if delay > row.delay*6/5 || delay < row.delay*4/5 {
				t.Errorf("the next start is delayed by %v, want %v", delay, row.delay)
			}
			if p.Down() != row.down || p.GivenUp(now) != row.givenUp {
				t.Errorf("down %t, given up %t, want %t, %t", p.Down(), p.GivenUp(now), row.down, row.givenUp)
			}
		})
	}
}
