package trace

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/attache-mcp/attache/proxy/wire"
)

// replayedIDs makes the spans of a session that is played again: the recorded ones,
// and where there is none the same ones at each replay.
type replayedIDs struct {
	recorded func(id []byte) string // the traceparent that a request got, "" if none
	random   *rand.ChaCha8
}

func newReplayedIDs(recorded func(id []byte) string) *replayedIDs {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], 1)
	return &replayedIDs{recorded, rand.NewChaCha8(seed)}
}

// span returns the span of a request.
func (r *replayedIDs) span(m *wire.Message, client clientTrace) traceparent {
	then, ok := parse(r.recorded(m.ID()))
	switch {
	case ok && (client.parent == "" || client.parent.traceID() == then.traceID()):
		return then
	case client.parent != "":
		return compose(client.parent.traceID(), newID(8, r.random.Uint64), client.parent.flags())
	}
	return compose(newID(16, r.random.Uint64), newID(8, r.random.Uint64), sampled|random)
}
