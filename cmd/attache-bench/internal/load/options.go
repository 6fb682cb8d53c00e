// Package load uses the stores of a shared database like the sessions of a day, and measures
// the cost: registrations, leases, looks for mail and messages of stdio attaches, the
// sessions of fronts, and the turns of briefings of both.
//
// It starts PostgreSQL and pgbouncer for the run. As in attache, each front has its own pool of
// connections to PostgreSQL, and each stdio attache has one connection over pgbouncer. The
// connections and servers are real; the attaches are goroutines that use the stores and relay
// no messages.
//
// A session lasts 30 minutes, has 5 servers and makes 40 calls. One in ten, all of them of stdio
// attaches, is in a team and writes 20 messages. At the peak there are three times as many sessions
// as on average, and the run plays the peak: first in real time, then at twice the
// speed, four times and so on, until the database does not keep up.
//
// At the end every message that was sent must have been received, and no limit exceeded.
package load

import (
	"io"
	"time"
)

// Options are the options of [Run].
type Options struct {
	Duration time.Duration // in real time
	Daily    int           // sessions a day
	Attaches int           // stdio attaches, five a session; the other sessions are in fronts
	Fronts   int
	Speed    float64       // of the first part; 0 means real time
	Step     time.Duration // of each higher speed; 0 plays none
	Out, Log io.Writer
}

// The model.
const (
	sessionTime        = 30 * time.Minute
	serversPerSession  = 5
	callsPerSession    = 40
	messagesPerSession = 20 // of a session in a team
	sessionsPerMember  = 10 // one in so many sessions, all of them of stdio attaches, is in a team
	peak               = 3
	teamSize           = 8
	retryAfter         = 5 * time.Second
)
