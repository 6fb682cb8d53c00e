// Package load uses the stores of a shared database as the sessions of a day do, and measures
// what that costs: registrations, leases, looks for mail and messages of stdio attaches, the
// sessions of fronts, and the turns of briefings of both.
//
// PostgreSQL and pgbouncer are programs that it starts for the run. Each front has a pool of
// connections of its own straight to PostgreSQL, and each stdio attache one connection over
// pgbouncer, as in those programs; connections and servers are real, and the attaches around
// the stores are goroutines, which relay no messages.
//
// A session lasts 30 minutes, has 5 servers and makes 40 calls; one in ten, all of them of stdio
// attaches, is in a team and writes 20 messages; at the peak there are three times as many as on
// average, and the peak is what is played. First it is played in real time, then at twice the
// speed, four times and so on, until the database does not keep up.
//
// At the end every message that was sent must have been received, once, and no limit exceeded.
package load

import (
	"io"
	"time"
)

// Options are the options of [Run].
type Options struct {
	Duration time.Duration // in real time
	Daily    int           // sessions a day
	Attaches int           // stdio attaches, five a session; the rest of the sessions are in fronts
	Fronts   int
	Speed    float64       // of the first part; 0 stands for real time
	Step     time.Duration // how long each speed after that is played; 0 plays none
	Getenv   func(string) string
	Out, Log io.Writer
}
