package revive

import (
	"math/rand/v2"
	"time"
)

// The figures of R13.
const (
	firstDelay = 250 * time.Millisecond
	maxDelay   = 30 * time.Second
	// stable is how long a server has to be up for its deaths to count no longer.
	stable = 60 * time.Second
	// early is how soon after it was ready the death of a server counts as early.
	early = 2 * time.Second
	// manyDeaths within stable, or manyEarly in a row, are a crash loop.
	manyDeaths = 5
	manyEarly  = 3
	// giveUp is how long a crash loop may last in which no server was up for longer than early.
	giveUp = 10 * time.Minute
	// shareOfUptime bounds the wait for the next server by that part of the time that the last
	// one was up. So calls wait for 9 s at most after a server that worked, and a server that
	// somebody kills now and then is there most of the time.
	shareOfUptime = 8
)

// A Pace says when a server that has ended is started again (R13). The zero value is
// ready.
type Pace struct {
	tries  int // since the server was stable
	early  int // deaths in a row
	deaths []time.Time
	up     time.Duration // how long the last server was up; 0 for one that died early
	down   time.Time     // since when there is a crash loop; zero if there is none
}

// Died notes a death. ready is when the server was ready, zero if it never was.
func (p *Pace) Died(ready, now time.Time) {
	up := now.Sub(ready)
	if ready.IsZero() {
		up = 0
	}
	if up >= stable {
		*p = Pace{}
	}
	p.early++
	if p.up = 0; up > early {
		p.early, p.up = 0, up
	}
	p.tries++
	p.deaths = append(p.deaths, now)
	for now.Sub(p.deaths[0]) > stable {
		p.deaths = p.deaths[1:]
	}
	loops := len(p.deaths) >= manyDeaths || p.early >= manyEarly
	switch {
	case !loops:
		p.down = time.Time{}
	case p.down.IsZero(), p.up > 0:
		p.down = now
	}
}

// Delay returns how long the next start has to wait, of which the time since the last
// death counts: nothing for the first, and then twice as long each time, give or take a
// fifth, but no more than a share of the time that the last server was up.
func (p *Pace) Delay(now time.Time) time.Duration {
	if p.tries <= 1 {
		return 0
	}
	d := maxDelay
	if doublings := p.tries - 2; doublings < 7 {
		d = min(d, firstDelay<<doublings)
	}
	if p.up > 0 {
		d = min(d, p.up/shareOfUptime)
	}
	return time.Duration(float64(d)*(0.8+0.4*rand.Float64())) - now.Sub(p.deaths[len(p.deaths)-1])
}

// Down reports whether there is a crash loop.
func (p *Pace) Down() bool { return !p.down.IsZero() }

// GivenUp reports whether there has been one for too long.
func (p *Pace) GivenUp(now time.Time) bool { return p.Down() && now.Sub(p.down) >= giveUp }
