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

// get returns the result for inputs, nil if there is none yet.
func (m *memo) get(in *Inputs) *Value {
	last := m.last.Load()
	if last == nil || last.context != in.Context || last.server != in.Server {
		return nil
	}
	return &last.value
}

func (m *memo) put(in *Inputs, v Value) {
	m.last.Store(&remembered{in.Context, in.Server, v})
}
