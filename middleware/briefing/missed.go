package briefing

import (
	"sync"
	"time"
)

// maxMissed is the number of results of a session without the briefing at which attache logs a
// warning: a server can shape its results so that none can carry the text.
const maxMissed = 3

// maxMissedSessions bounds the table, because the client chooses the conversation keys.
const maxMissedSessions = 1_000

// Memory holds the sessions of a connection that had results, but none that is known to have
// shown the briefing to the model, and a timer. The zero value is empty. Close it when the connection
// ends: a reload may have removed the layer by then.
type Memory struct {
	mu       sync.Mutex
	sessions map[string]missedSession
	keep     *time.Timer // see turn.keep; nil for none
	closed   bool
}

// A missedSession is a session whose model may not have seen its briefing.
type missedSession struct {
	of      *session
	results int // the number of results without the briefing
	why     string
}

// miss records that the model did not see the briefing in a result of a session, and why. without
// means that the result did not carry the text.
func (c *Conn) miss(session string, s *session, why string, without bool) {
	memory := c.o.Memory
	memory.mu.Lock()
	m, known := memory.sessions[session]
	m.of, m.why = s, why
	if without {
		m.results++
	}
	if memory.sessions == nil {
		memory.sessions = map[string]missedSession{}
	}
	if known || len(memory.sessions) < maxMissedSessions {
		memory.sessions[session] = m
	}
	memory.mu.Unlock()
	if m.results == maxMissed && !s.isEmpty() {
		c.warnings.once("three results of a session went without the briefing: " + why + "; see docs/briefing.md")
	}
}

// forgetMissed removes a session whose model has seen the briefing.
func (c *Conn) forgetMissed(session string) {
	c.o.Memory.mu.Lock()
	defer c.o.Memory.mu.Unlock()
	delete(c.o.Memory.sessions, session)
}

// Close stops the timer.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.keep != nil {
		m.keep.Stop()
	}
}

// Close ends the connection, and closes its Memory. It logs one warning if the model of a session may
// not have seen the briefing, unless that was logged before.
func (c *Conn) Close() {
	c.o.Memory.Close()
	c.o.Memory.mu.Lock()
	defer c.o.Memory.mu.Unlock()
	for _, m := range c.o.Memory.sessions {
		if m.results < maxMissed && !m.of.isEmpty() {
			c.warnings.once("the session ended and the model may not have seen the briefing: " + m.why +
				"; set briefing.structured or briefing.channels as docs/briefing.md says")
			return
		}
	}
}
