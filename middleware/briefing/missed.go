package briefing

import "sync"

// maxMissed is how many results of a session may go without the briefing before that is
// logged: a server can shape its results so that none carries it.
const maxMissed = 3

// maxMissedSessions bounds the table: conversation keys are the client's to choose.
const maxMissedSessions = 1_000

// missed holds the sessions of a connection that had results and whose model has not seen
// the briefing, as far as is known.
type missed struct {
	mu       sync.Mutex
	sessions map[string]miss
}

type miss struct {
	results int // that went without the briefing
	why     string
}

// miss notes a result of a session that the briefing was not seen in, and why. without
// says that it did not carry it.
func (c *Conn) miss(session, why string, without bool) {
	c.o.Memory.missed.mu.Lock()
	m, known := c.o.Memory.missed.sessions[session]
	m.why = why
	if without {
		m.results++
	}
	if c.o.Memory.missed.sessions == nil {
		c.o.Memory.missed.sessions = map[string]miss{}
	}
	if known || len(c.o.Memory.missed.sessions) < maxMissedSessions {
		c.o.Memory.missed.sessions[session] = m
	}
	c.o.Memory.missed.mu.Unlock()
	if m.results == maxMissed {
		c.warnings.once("three results of a session went without the briefing: "+why+"; see docs/briefing.md", nil)
	}
}

// seen forgets a session that has had its briefing.
func (c *Conn) seen(session string) {
	c.o.Memory.missed.mu.Lock()
	defer c.o.Memory.missed.mu.Unlock()
	delete(c.o.Memory.missed.sessions, session)
}

// Close ends the connection. It logs one warning if the model of a session has not seen
// the briefing, as far as is known, and that was not logged before.
func (c *Conn) Close() {
	c.o.Memory.missed.mu.Lock()
	defer c.o.Memory.missed.mu.Unlock()
	for _, m := range c.o.Memory.missed.sessions {
		if m.results < maxMissed {
			c.warnings.once("the session ended and the model may not have seen the briefing: "+m.why+
				"; set briefing.structured or briefing.channels as docs/briefing.md says", nil)
			return
		}
	}
}
