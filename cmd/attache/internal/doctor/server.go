package doctor

import (
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/proxy/wire"
)

// slowStart is how long a server may take before clients begin to give it up:
// several wait 10 s for the first answer.
const slowStart = 10 * time.Second

// modernTime is how long a server may take in the modern era that has answered, or
// had its time, in the legacy one.
const modernTime = 10 * time.Second

// sayWaiting is after how long doctor says that it waits for the server.
const sayWaiting = 3 * time.Second

// An era is what a server answered in one era of the protocol.
type era struct {
	inspect.Visited
	reply wire.Value // to the first request
	tools []byte     // a JSON array, nil if there was none
	noise int
	first []byte // of the noise
	err   error
}

// answered reports whether the server speaks the era.
func (e *era) answered() bool { return e.err == nil && e.reply.Get("result").Exists() }

// why says why an era has no answer: what went wrong, and the server's last word.
func why(e *era) string {
	text := "it answered " + inspect.Shorten(e.reply.Raw)
	if e.err != nil {
		text = e.err.Error()
	}
	if e.Exit.Status() != 0 {
		text += "; " + e.Exit.String()
	}
	if n := len(e.Tail); n > 0 {
		text += "; on stderr: " + strings.Join(e.Tail[max(0, n-3):], " / ")
	}
	return text
}

// serverText names a server by what it says of itself.
func serverText(info wire.Value) string {
	return strings.TrimSpace(inspect.Shorten([]byte(info.Get("name").Text() + " " + info.Get("version").Text())))
}

func toolCount(e *era) string {
	if e.tools == nil {
		return "no tools"
	}
	return cli.Plural(len(inspect.ToolNames(e.tools)), "tool")
}
