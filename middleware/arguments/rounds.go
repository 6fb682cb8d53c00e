package arguments

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// rounds remembers what was filled into a call that the server answered with
// input_required, so that its next round gets the same: a server may bind
// requestState to the parameters of the first (specification, patterns/mrtr). Only
// the modern era has rounds.
type rounds struct {
	mu    sync.Mutex
	seed  maphash.Seed
	kept  map[uint64]map[string]string
	order []uint64
}

// maxRounds bounds the memory; a call answered with input_required may never
// come back.
const maxRounds = 1000

// begin returns the key under which this call's next round will be found, 0 if
// it can have none, and what was filled in the round before, if this is a next
// one. A round is known by its requestState, or without one by the tool and the
// arguments the client gave, which a next round repeats.
func (r *rounds) begin(m *wire.Message, view *sessionstate.Context) (key uint64, before map[string]string) {
	if view == nil || !view.Modern {
		return 0, nil
	}
	key = r.sum(m.Name().Raw, m.Arguments().Raw)
	if state := m.Get("params", "requestState"); state.Exists() {
		return key, r.get(r.sum(state.Raw, nil))
	}
	if m.Get("params", "inputResponses").Exists() {
		return key, r.get(key)
	}
	return key, nil
}

func (r *rounds) sum(a, b []byte) uint64 {
	r.mu.Lock()
	if r.seed == (maphash.Seed{}) {
		r.seed = maphash.MakeSeed()
	}
	seed := r.seed
	r.mu.Unlock()
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(a)
	h.WriteByte(0)
	h.Write(b)
	return h.Sum64() | 1
}

func (r *rounds) get(key uint64) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[key]
}

// keep returns the hook that remembers what was filled, if the server asks for
// another round.
func (r *rounds) keep(key uint64, filled map[string]string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if !reply.Get("result", "resultType").Equals("input_required") {
			return nil
		}
		r.put(key, filled)
		if state := reply.Get("result", "requestState"); state.Exists() {
			r.put(r.sum(state.Raw, nil), filled)
		}
		return nil
	}
}

func (r *rounds) put(key uint64, values map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[uint64]map[string]string{}
	}
	if r.kept[key] == nil {
		r.order = append(r.order, key)
	}
	r.kept[key] = values
	if len(r.order) > maxRounds {
		delete(r.kept, r.order[0])
		r.order = r.order[1:]
	}
}
