package expression

import (
	"sync/atomic"

	"github.com/attache-mcp/attache/sessionstate"
)

// A memo holds the last result of a program that reads nothing of a call. Most
// calls come with the snapshot of the call before them, which is immutable.
type memo struct{ last atomic.Pointer[remembered] }

type remembered struct {
	context *sessionstate.Context
	server  string
	value   Value
}

func (m *memo) get(in *Inputs) (Value, bool) {
	last := m.last.Load()
	if last == nil || last.context != in.Context || last.server != in.Server {
		return Value{}, false
	}
	return last.value, true
}

func (m *memo) put(in *Inputs, v Value) {
	m.last.Store(&remembered{in.Context, in.Server, v})
}
