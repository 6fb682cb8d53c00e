package revive

import (
	"math/rand/v2"
	"time"
)

// The values of R13.
const (
	firstDelay = 250 * time.Millisecond
	maxDelay   = 30 * time.Second
	// stable is the uptime of a server after which earlier deaths no longer count.
	stable = 60 * time.Second
	// early is the longest uptime of a server whose death counts as early.
	early = 2 * time.Second
	// manyDeaths within stable, or manyEarly in a row, are a crash loop.
	manyDeaths = 5
	manyEarly  = 3
	// giveUp is how long a crash loop may last while every server dies early.
	giveUp = 10 * time.Minute
	// shareOfUptime bounds the delay of the next start to this fraction (1/8) of the last uptime.
	// So calls wait for 9 s at most after a server that worked, and a server that is killed now
	// and then runs most of the time.
	shareOfUptime = 8
)

// A pace computes when a server that has ended is started again (R13). The zero value is
// ready to use.
type pace struct {
	tries  int           // deaths since the server was stable
	early  int           // early deaths in a row
	deaths []time.Time   // within stable
	up     time.Duration // how long the last server was up; 0 for one that died early
	down   time.Time     // since when there is a crash loop; zero if there is none
}

// Died records a death. ready is when the server was ready, zero if it never was.
func (p *pace) Died(ready, now time.Time) {
	up := now.Sub(ready)
	if ready.IsZero() {
		up = 0
	}
	if up >= stable {
		*p = pace{}
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
	// A server that worked for a while begins the time of GivenUp anew.
	case p.down.IsZero(), p.up > 0:
		p.down = now
	}
}

// Delay returns how much longer the next start must wait. The delay, which begins with the
// last death, is zero after the first one. Then it doubles each time, plus or minus a fifth,
// up to a share of the uptime of the last server.
func (p *pace) Delay(now time.Time) time.Duration {
	if p.tries <= 1 {
		return 0
	}
	d := maxDelay
	if doublings := p.tries - 2; doublings < 7 { // 250 ms doubled seven times are over maxDelay
		d = min(d, firstDelay<<doublings)
	}
	if p.up > 0 {
		d = min(d, p.up/shareOfUptime)
	}
	return time.Duration(float64(d)*(0.8+0.4*rand.Float64())) - now.Sub(p.deaths[len(p.deaths)-1])
}

// Down reports whether there is a crash loop.
func (p *pace) Down() bool { return !p.down.IsZero() }

// GivenUp reports whether the crash loop has lasted too long.
func (p *pace) GivenUp(now time.Time) bool { return p.Down() && now.Sub(p.down) >= giveUp }
