package arguments

import (
	"context"
	"log/slog"
	"strings"
)

// An event is logged only once per connection, or at a higher level the first time.
type event struct {
	kind string
	tool string // "" for all
	rule *rule  // nil for all
}

// maxEvents bounds the number of events, and maxEventTool the bytes of a tool's name in one, because the
// server and the client choose the names of tools.
const maxEvents, maxEventTool = 1000, 1 << 10

// first reports whether an event occurs for the first time.
func (c *Conn) first(e event) bool {
	e.tool = e.tool[:min(len(e.tool), maxEventTool)]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logged[e] || len(c.logged) >= maxEvents {
		return false
	}
	if c.logged == nil {
		c.logged = map[event]bool{}
	}
	// The name may be a view of a frame, whose memory is used again, or a part of a long name.
	e.tool = strings.Clone(e.tool)
	c.logged[e] = true
	return true
}

// level returns the log level for an event: info the first time, then debug.
func (c *Conn) level(e event) slog.Level {
	if c.first(e) {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// once logs an event the first time.
func (c *Conn) once(e event, level slog.Level, text string, args ...any) {
	if c.first(e) {
		c.log.Log(context.Background(), level, text, args...)
	}
}
