package expression

import (
	"sync/atomic"

	"github.com/attache-mcp/attache/sessionstate"
)

// A memo caches the last result of a program that reads nothing of a call. Most calls have the
// same immutable snapshot of the session as the previous call.
type memo struct{ last atomic.Pointer[result] }

type result struct {
	context *sessionstate.Context
	server  string
	value   Value
}

// get returns the cached result for in, nil if there is none.
func (m *memo) get(in *Inputs) *Value {
	last := m.last.Load()
	if last == nil || last.context != in.Context || last.server != in.Server {
		return nil
	}
	return &last.value
}

func (m *memo) put(in *Inputs, v Value) {
	m.last.Store(&result{in.Context, in.Server, v})
}
