package arguments

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// rounds remembers what was given to a call that the server answered with
// input_required, so that its next round gets the same: a server may bind
// requestState to the parameters of the first (specification, patterns/mrtr). Only
// the modern era has rounds.
type rounds struct {
	seed maphash.Seed

	mu    sync.Mutex
	kept  map[uint64]map[int]string // by round, by the index of the rule: JSON
	order []uint64
}

// maxRounds bounds the memory; a call answered with input_required may never
// come back.
const maxRounds = 1000

// recall gives intents the values of the round before, if this call is a next
// round, and returns the key under which the round after it will be found, 0 if
// there can be none. A round is identified by its session and principal, by the tool, and by
// the requestState; without a requestState, by the client's arguments, which the next round
// repeats. So a call gets no values from another tool, another principal, or the time before a
// role was taken from its principal.
func (c *Conn) recall(tc *toolCall, intents []intent) (key uint64) {
	if tc.view == nil || !tc.view.Modern {
		return 0
	}
	key = c.rounds.sum(tc.view, tc.m.Name().Raw, tc.m.Arguments().Raw)
	var last map[int]string
	if state := tc.m.Get("params", "requestState"); state.Exists() {
		last = c.rounds.get(c.rounds.sum(tc.view, tc.m.Name().Raw, state.Raw))
	} else if tc.m.Get("params", "inputResponses").Exists() {
		last = c.rounds.get(key)
	}
	for i := range intents {
		if raw, ok := last[intents[i].rule.index]; ok {
			intents[i].value.raw = []byte(raw)
		}
	}
	return key
}

// sum returns the key of a round of the session and principal of view.
func (r *rounds) sum(view *sessionstate.Context, a, b []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	part := func(text string) { h.WriteString(text); h.WriteByte(0) }
	part(view.Session.Value)
	if p := view.Principal; p != nil {
		for _, text := range [...]string{p.KeyID, p.User, p.Tenant, p.Plan} {
			part(text)
		}
		for _, list := range [...][]string{p.Roles, p.Permissions} {
			for _, text := range list {
				part(text)
			}
			h.WriteByte(0xfe)
		}
	}
	trust, _ := view.Lookup("session.trust")
	part(trust.Value)
	h.WriteByte(0xff)
	h.Write(a)
	h.WriteByte(0)
	h.Write(b)
	return h.Sum64() | 1
}

func (r *rounds) get(key uint64) map[int]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[key]
}

// keep returns the hook that remembers the values that were sent to a tool, by the index of
// their rule, if the server of view's session asks for another round.
func (r *rounds) keep(view *sessionstate.Context, tool []byte, key uint64, values map[int]string) middleware.ReplyHook {
	return func(_ context.Context, reply *wire.Message) error {
		if !reply.Get("result", "resultType").Equals("input_required") {
			return nil
		}
		r.put(key, values)
		if state := reply.Get("result", "requestState"); state.Exists() {
			r.put(r.sum(view, tool, state.Raw), values)
		}
		return nil
	}
}

func (r *rounds) put(key uint64, values map[int]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[uint64]map[int]string{}
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
