package proxy

import (
	"log/slog"
	"strconv"
	"sync/atomic"
)

// noise counts the lines on the server's stdout that are no messages, the
// commonest fault of servers: a log line printed where only the protocol may
// speak.
type noise struct {
	log *slog.Logger
	n   atomic.Int64
}

// noiseLogged is how many lines are logged before the rest is only counted.
const noiseLogged = 10

func (n *noise) add(line []byte) {
	if blank(line) {
		return
	}
	count := n.n.Add(1)
	if count > noiseLogged {
		return
	}
	attrs := []any{"line", strconv.Quote(string(line[:min(len(line), 200)]))}
	if count == noiseLogged {
		attrs = append(attrs, "note", "further lines are counted, not shown")
	}
	n.log.Warn("the server wrote a line to stdout that is no JSON-RPC; it was kept from the client (--stdout-noise=forward lets it through)", attrs...)
}

func blank(line []byte) bool {
	for _, c := range line {
		if c > ' ' {
			return false
		}
	}
	return true
}

// report says how much was kept back, if it was not all shown.
func (n *noise) report() {
	if count := n.n.Load(); count > noiseLogged {
		n.log.Warn("lines of the server's stdout were kept from the client because they are no JSON-RPC", "count", count)
	}
}
