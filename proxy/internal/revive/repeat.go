package revive

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/wire"
)

// maxKept is how long the line of a request may be that is kept to be sent again.
const maxKept = 64 << 10

// Repeatable reports whether a request may be sent to a server twice (R8). retry says so
// of tools; nil for none. It is the operator's word: the annotations of a server may be wrong.
func Repeatable(m *wire.Message, retry func(tool string) bool) bool {
	if m.Kind() != wire.Request || !m.Plain() || len(m.Line()) > maxKept {
		return false
	}
	switch m.Method() {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "prompts/get", "resources/read",
		"completion/complete", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen":
		return !isRound(m)
	case "tools/call":
		return retry != nil && !isRound(m) && retry(m.Name().Text())
	}
	return false
}

// isRound reports whether a request continues an earlier call, which the server has asked for
// input, or starts a task. A new server knows nothing of either.
func isRound(m *wire.Message) bool {
	for _, key := range []string{"inputResponses", "requestState", "task"} {
		if m.Get("params", key).Exists() {
			return true
		}
	}
	return false
}

// A digest stands for what a call asks for: its method, and its params without _meta,
// which differs each time.
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

// repeatedCalls are those calls in flight at a death that attache may send to the next
// server. The zero value is empty.
type repeatedCalls struct {
	// Touched while one link takes the place of another:
	before map[digest]bool // those of the last death
	now    map[digest]bool

	some  atomic.Bool // there is progress to be dropped
	mu    sync.Mutex
	muted map[string][]byte // by the progress token of a call that was sent again, its id
}

// begin begins with the calls of a death.
func (t *repeatedCalls) begin() {
	t.before, t.now = t.now, map[digest]bool{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.muted = nil
	t.some.Store(false)
}

// add takes a call that was in flight and reports whether one like it was in flight at
// the death before, too.
func (t *repeatedCalls) add(m *wire.Message) (again bool) {
	d := digestOf(m)
	t.now[d] = true
	return t.before[d]
}

// mute drops the progress of a call that is sent again: the values would begin again, and
// must rise (R16).
func (t *repeatedCalls) mute(m *wire.Message) {
	token := m.Get("params", "_meta", "progressToken").Raw
	if token == nil {
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

// isMuted reports whether a notification of the server's is progress that is dropped.
// awaits reports whether a call has no answer yet: later, its token may be another's.
func (t *repeatedCalls) isMuted(m *wire.Message, awaits func(id []byte) bool) bool {
	if !t.some.Load() || !m.MethodIs("notifications/progress") {
		return false
	}
	token := m.Get("params", "progressToken").Raw
	t.mu.Lock()
	id := t.muted[string(token)]
	t.mu.Unlock()
	return id != nil && awaits(id)
}
