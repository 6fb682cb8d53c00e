// Package noise counts the lines on a server's stdout that are no messages, the most
// common fault of servers: a log line printed where only the protocol may speak.
package noise

import (
	"bytes"
	"log/slog"
	"strconv"
	"sync/atomic"
)

// A Counter logs the first lines and counts the rest.
type Counter struct {
	Log *slog.Logger

	n atomic.Int64
}

// logged is how many lines are logged before the rest is only counted.
const logged = 10

// Add counts a line, or the beginning of one.
func (c *Counter) Add(line []byte) {
	if Blank(line) {
		return
	}
	count := c.n.Add(1)
	if count > logged {
		return
	}
	attrs := []any{"line", strconv.Quote(string(line[:min(len(line), 200)]))}
	if count == logged {
		attrs = append(attrs, "note", "further lines are counted, not shown")
	}
	c.Log.Warn("the server wrote a line to stdout that is no JSON-RPC; it was kept from the client (--stdout-noise=forward lets it through)", attrs...)
}

// Report logs how many lines were kept back, if they were not all shown.
func (c *Counter) Report() {
	if count := c.n.Load(); count > logged {
		c.Log.Warn("lines of the server's stdout were kept from the client because they are no JSON-RPC", "count", count)
	}
}

// Blank reports whether a line has nothing but white space and control characters.
func Blank(line []byte) bool {
	return bytes.IndexFunc(line, func(r rune) bool { return r > ' ' }) < 0
}
