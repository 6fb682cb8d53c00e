// Package noise logs and counts the lines on a server's stdout that are not messages. Such
// lines, mostly of a log, are the most common fault of servers.
package noise

import (
	"bytes"
	"log/slog"
	"strconv"
	"sync/atomic"
)

// A Counter logs the first lines and counts all.
type Counter struct {
	Log *slog.Logger

	n atomic.Int64
}

// maxLogged is how many lines are logged. Further lines are only counted.
const maxLogged = 10

// Add counts a line, or the beginning of one.
func (c *Counter) Add(line []byte) {
	if Blank(line) {
		return
	}
	count := c.n.Add(1)
	if count > maxLogged {
		return
	}
	attrs := []any{"line", strconv.Quote(string(line[:min(len(line), 200)]))}
	if count == maxLogged {
		attrs = append(attrs, "note", "further lines are counted, not shown")
	}
	c.Log.Warn("the server wrote a line to stdout that is not JSON-RPC; it was kept from the client (--stdout-noise=forward lets it through)", attrs...)
}

// Report logs the number of lines, if not all were logged.
func (c *Counter) Report() {
	if count := c.n.Load(); count > maxLogged {
		c.Log.Warn("lines of the server's stdout were kept from the client because they are not JSON-RPC", "count", count)
	}
}

// Blank reports whether a line has only white space and control characters.
func Blank(line []byte) bool {
	return bytes.IndexFunc(line, func(r rune) bool { return r > ' ' }) < 0
}
