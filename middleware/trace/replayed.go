package trace

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/attache-mcp/attache/proxy/wire"
)

// replayedIDs returns the spans for the replay of a session: the recorded ones, else new ones
// that are the same at each replay.
type replayedIDs struct {
	recorded func(id []byte) string // see ConnOptions.Replayed
	random   *rand.ChaCha8
}

func newReplayedIDs(recorded func(id []byte) string) *replayedIDs {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], 1)
	return &replayedIDs{recorded, rand.NewChaCha8(seed)}
}

// span returns the span of a request.
func (r *replayedIDs) span(m *wire.Message, client clientTrace) traceparent {
	recorded, ok := parse(r.recorded(m.ID()))
	switch {
	case ok && (client.parent == "" || client.parent.traceID() == recorded.traceID()):
		return recorded
	case client.parent != "":
		return compose(client.parent.traceID(), newID(8, r.random.Uint64), client.parent.flags())
	}
	return compose(newID(16, r.random.Uint64), newID(8, r.random.Uint64), sampled|random)
}
