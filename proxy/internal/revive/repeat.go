package revive

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxRepeated is the length of the longest line that is sent again.
const maxRepeated = 64 << 10

// Repeatable reports whether a request may be sent to a server twice (R8). retry reports it
// for a tool, and may be nil. The operator decides about tools, because the annotations of a
// server may be wrong.
func Repeatable(m *wire.Message, retry func(tool string) bool) bool {
	if m.Kind() != wire.Request || !m.Plain() || len(m.Line()) > maxRepeated {
		return false
	}
	switch m.Method() {
	// These change nothing, or only what Record sets on the next server in the same way. No other method
	// is known to be safe.
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "prompts/get", "resources/read",
		"completion/complete", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen":
		return !isRound(m)
	case "tools/call":
		return retry != nil && !isRound(m) && retry(m.Name().Text())
	}
	return false
}

// isRound reports whether a request continues an earlier call for which the server requested
// input, or starts a task. A new server knows nothing of either.
func isRound(m *wire.Message) bool {
	for _, key := range []string{"inputResponses", "requestState", "task"} {
		if m.Get("params", key).Exists() {
			return true
		}
	}
	return false
}

// A digest identifies equal calls: it covers the method, and the params without _meta, which
// differs each time.
type digest [sha256.Size]byte

func digestOf(m *wire.Message) (d digest) {
	h := sha256.New()
	h.Write([]byte(m.Method()))
	for p := range m.Params().Members() {
		if !p.Key.Equals("_meta") {
			h.Write(append([]byte{0}, p.Key.Raw...))
			h.Write(p.Value.Raw)
		}
	}
	h.Sum(d[:0])
	return d
}

// repeatedCalls tracks the calls in flight at the end of a server that attache may send to the
// next server. The zero value is empty.
type repeatedCalls struct {
	// Used only while one link replaces another:
	before map[digest]bool // the calls at the previous end
	now    map[digest]bool

	some  atomic.Bool // muted is not empty
	mu    sync.Mutex
	muted map[string][]byte // ids of calls that were sent again, by progress token
}

// begin begins with the calls at the end of another server.
func (t *repeatedCalls) begin() {
	t.before, t.now = t.now, map[digest]bool{}
	t.mu.Lock()
	defer t.mu.Unlock()
	// None of these calls is sent a third time, so each gets its answer now.
	t.muted = nil
	t.some.Store(false)
}

// add adds a call that was in flight, and reports whether an equal call was in flight at
// the previous end too.
func (t *repeatedCalls) add(m *wire.Message) (again bool) {
	d := digestOf(m)
	t.now[d] = true
	return t.before[d]
}

// mute makes isMuted report the progress of a call that is sent again: its values would
// start again, but must increase (R16).
func (t *repeatedCalls) mute(m *wire.Message) {
	token := m.Get("params", "_meta", "progressToken").Raw
	if token == nil { // the client wants no progress
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.muted == nil {
		t.muted = map[string][]byte{}
	}
	t.muted[string(token)] = bytes.Clone(m.ID())
	t.some.Store(true)
}

// isMuted reports whether a notification of the server is progress to be dropped. awaits
// reports whether a call has no answer yet; after the answer, another call may use its token.
func (t *repeatedCalls) isMuted(m *wire.Message, awaits func(id []byte) bool) bool {
	if !t.some.Load() || !m.MethodIs("notifications/progress") {
		return false
	}
	// Compared as bytes: a server returns the token as it got it.
	token := m.Get("params", "progressToken").Raw
	t.mu.Lock()
	id := t.muted[string(token)]
	t.mu.Unlock()
	return id != nil && awaits(id)
}
