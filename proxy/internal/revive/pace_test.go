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
		{"the fourth death of one that works for 5 s", 5 * time.Second, 4, 625 * time.Millisecond, false, false},
		{"the fifth death of one that works for 5 s", 5 * time.Second, 5, 625 * time.Millisecond, true, false},
		{"the second death of one that works for 2 s", 2 * time.Second, 2, 250 * time.Millisecond, false, false},
		{"the third death of one that works for 2 s", 2 * time.Second, 3, 500 * time.Millisecond, true, false},
		{"the third early death", time.Second, 3, 500 * time.Millisecond, true, false},
		{"one that always dies early", time.Second, 15, 30 * time.Second, true, false},
		{"one that is never ready", 0, 15, 30 * time.Second, true, false},
		{"one that is never ready for 10 minutes", 0, 60, 30 * time.Second, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var p pace
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
			for range 100 { // a part of the delay is random
				if delay = p.Delay(now); delay > row.delay*6/5 || delay < row.delay*4/5 {
					t.Errorf("the next start is delayed by %v, want %v", delay, row.delay)
				}
			}
			if p.Down() != row.down || p.GivenUp(now) != row.givenUp {
				t.Errorf("down %t, given up %t, want %t, %t", p.Down(), p.GivenUp(now), row.down, row.givenUp)
			}
		})
	}
}

// A crash loop is given up after exactly ten minutes.
func TestGivenUp(t *testing.T) {
	var p pace
	now := time.Unix(1_800_000_000, 0)
	if p.GivenUp(now) {
		t.Error("given up before a server has died")
	}
	for range manyEarly {
		p.Died(time.Time{}, now)
	}
	for after, want := range map[time.Duration]bool{0: false, giveUp - 1: false, giveUp: true} {
		if got := p.GivenUp(now.Add(after)); got != want {
			t.Errorf("after %v: %v", after, got)
		}
	}
}

// Five deaths are a crash loop if the first was no more than a minute ago.
func TestManyDeaths(t *testing.T) {
	for between, want := range map[time.Duration]bool{stable / (manyDeaths - 1): true, stable/(manyDeaths-1) + 1: false} {
		var p pace
		now := time.Unix(1_800_000_000, 0)
		for range manyDeaths {
			now = now.Add(between)
			p.Died(now.Add(-early-1), now)
		}
		if p.Down() != want {
			t.Errorf("a death each %v: %v", between, p.Down())
		}
	}
}
