package arguments

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// rounds remembers the values that were written to a call that the server answered with
// input_required, so that its next round gets the same values: a server may bind
// requestState to the parameters of the first round (specification, patterns/mrtr). Only
// the modern era has rounds.
type rounds struct {
	seed maphash.Seed // random, so that no client can make a call with the key of another one

	mu     sync.Mutex
	values map[uint64]map[int]string // JSON, by the key of the round and the index of the rule
	order  []uint64                  // the keys, oldest first
}

// maxRounds bounds the number of rounds, because a client may never send the next round.
const maxRounds = 1000

// recall sets the values of intents to those of the previous round, if there was one. It
// returns the key for the values of this round, 0 if there are no rounds. The key is made of
// the session, the principal, the tool, and the requestState or, without one, the client's
// arguments, which the next round repeats. So a call gets no values from another tool or
// another principal, or from the time before its principal lost a role.
func (c *Conn) recall(tc *toolCall, intents []intent) (key uint64) {
	if tc.view == nil || !tc.view.Modern {
		return 0
	}
	key = c.rounds.sum(tc.view, tc.m.Name().Raw, tc.m.Arguments().Raw)
	var last map[int]string
	if state := tc.m.Get("params", "requestState"); state.Exists() {
		last = c.rounds.get(c.rounds.sum(tc.view, tc.m.Name().Raw, []byte(state.Text())))
	} else if tc.m.Get("params", "inputResponses").Exists() {
		// The server has sent no requestState, so the arguments are all that connects the rounds.
		last = c.rounds.get(key)
	}
	for i := range intents {
		if raw, ok := last[intents[i].rule.index]; ok {
			intents[i].value.raw = []byte(raw)
		}
	}
	return key
}

// sum returns the key of a round in the session of view.
func (r *rounds) sum(view *sessionstate.Context, a, b []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	list := func(texts ...string) {
		for _, text := range texts {
			h.WriteString(text)
			h.WriteByte(0)
		}
		h.WriteByte(0xff) // in no UTF-8 text
	}
	// Each text and each list has an end of its own, so that they do not run into one another.
	list(view.Session.Value)
	if p := view.Principal; p != nil {
		list(p.KeyID, p.User, p.Tenant, p.Plan)
		list(p.Roles...)
		list(p.Permissions...)
	}
	trust, _ := view.Lookup("session.trust")
	list(trust.Value)
	h.Write(a)
	h.WriteByte(0)
	h.Write(b)
	return h.Sum64() | 1 // 0 means no key
}

func (r *rounds) get(key uint64) map[int]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.values[key]
}

// hook returns the hook that remembers the values that were written to a call if the server asks
// for another round.
func (r *rounds) hook(view *sessionstate.Context, tool []byte, key uint64, values map[int]string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if !reply.Get("result", "resultType").Equals("input_required") {
			return nil
		}
		// The next round sends the requestState of this reply or, without one, repeats the arguments.
		r.put(key, values)
		if state := reply.Get("result", "requestState"); state.Exists() {
			r.put(r.sum(view, tool, []byte(state.Text())), values) // peers may escape it differently
		}
		return nil
	}
}

func (r *rounds) put(key uint64, values map[int]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.values == nil {
		r.values = map[uint64]map[int]string{}
	}
	// A key that is put again keeps its place in order; so it may be dropped early, but never twice.
	if r.values[key] == nil {
		r.order = append(r.order, key)
	}
	r.values[key] = values
	if len(r.order) > maxRounds {
		delete(r.values, r.order[0])
		r.order = r.order[1:]
	}
}
