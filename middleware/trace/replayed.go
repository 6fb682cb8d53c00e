package trace

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/attache-mcp/attache/proxy/wire"
)

// replayed makes the spans of a session that is played again: those of then, and where
// there is none the same ones each time.
type replayed struct {
	parent func(id []byte) string // what a request was given then; "" for nothing
	ids    *rand.ChaCha8
}

// own returns the span of a request that came with g.
func (r *replayed) own(m *wire.Message, g given) traceparent {
	then, ok := parse(r.parent(m.ID()))
	switch {
	case ok && (g.parent == "" || g.parent.traceID() == then.traceID()):
		return then
	case g.parent != "":
		return compose(g.parent.traceID(), newID(8, r.ids.Uint64), g.parent.flags())
	}
	return compose(newID(16, r.ids.Uint64), newID(8, r.ids.Uint64), sampled|random)
}

func newReplayed(parent func(id []byte) string) *replayed {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], 1)
	return &replayed{parent, rand.NewChaCha8(seed)}
}
