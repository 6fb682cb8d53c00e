package arguments

import (
	"context"
	"log/slog"
	"strings"

	"github.com/attache-mcp/attache/middleware"
)

// An event is logged only once per connection, or at a higher level the first time.
type event struct {
	kind string
	tool string // "" for all
	rule *rule  // nil for all
}

// maxEvents bounds the number of events, because the server chooses the names of tools.
const maxEvents = 1000

// first reports whether an event occurs for the first time.
func (c *Conn) first(e event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logged[e] || len(c.logged) >= maxEvents {
		return false
	}
	if c.logged == nil {
		c.logged = map[event]bool{}
	}
	// The name may be a view of a frame, whose memory is used again.
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

// logEdit logs that an argument was filled or pinned, at info the first time for each tool and
// rule, so that a wrong edit is noticed.
func (c *Conn) logEdit(tc *toolCall, in *intent) {
	verb := "filled"
	if in.rule.enforces() {
		verb = "pinned"
	}
	level := c.level(event{verb, tc.name, in.rule})
	if c.log.Enabled(context.Background(), level) { // avoid building the text
		c.log.Log(tc.call.LogContext(), level, verb+" "+in.rule.path+" of "+middleware.Clip(tc.name)+" from "+in.origin())
	}
}

// logDifference logs that the call's value differs from the rule's.
func (c *Conn) logDifference(tc *toolCall, in *intent, what string) {
	if c.log.Enabled(context.Background(), slog.LevelInfo) { // avoid building the texts
		c.log.InfoContext(tc.call.LogContext(), what, "tool", middleware.Clip(tc.name), "argument", in.rule.path,
			"call_value", c.shown(in), "rule_value", in.value.String(), "rule_source", in.origin())
	}
}

// logMisfit logs, once for each tool and rule, that an argument does not accept the rule's value.
func (c *Conn) logMisfit(tc *toolCall, p *place, in *intent) {
	c.once(event{"misfit", tc.name, p.rule}, slog.LevelInfo, "an argument is not filled, because its schema does not take the rule's value",
		"tool", middleware.Clip(tc.name), "argument", p.rule.path, "why", p.misfit(&in.value), "rule_source", in.origin())
}

// shown returns the call's own value for a log line, without secrets.
func (c *Conn) shown(in *intent) string {
	v := in.callValue
	if c.o.Scrub != nil {
		v.Raw = c.o.Scrub(in.rule.Argument, v.Raw)
	}
	text := string(v.Raw)
	if v.IsString() {
		text = v.Text()
	}
	return middleware.Clip(text)
}
