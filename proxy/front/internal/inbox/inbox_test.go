package inbox

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A slowRelay takes its first line when it is told to, and the others at once.
type slowRelay struct{ release chan struct{} }

func (r slowRelay) Try(*wire.Message) bool       { <-r.release; return true }
func (slowRelay) Line(*wire.Message, bool) error { return nil }
func (slowRelay) Lines([]byte, io.Reader) error  { return nil }
func (slowRelay) End()                           {}

// Who waits for room goes on when the line that the relay took by Try was what made the inbox
// full.
func TestRoomAfterTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := New()
		relay := slowRelay{make(chan struct{})}
		box.Push(relay)
		const size = 4 << 10
		var line wire.Message
		line.Reset(wire.Client, make([]byte, size))
		var put atomic.Int64
		for range room/size + 2 { // the last one has to wait
			go func() {
				if err := box.Put(context.Background(), &line); err != nil {
					t.Error(err)
				}
				put.Add(1)
			}()
			synctest.Wait()
		}
		if n := put.Load(); n != int64(room/size) {
			t.Fatalf("%d lines were put while the relay took none", n)
		}
		close(relay.release)
		synctest.Wait()
		if n := put.Load(); n != int64(room/size+2) {
			t.Errorf("%d lines were put when the relay had taken all", n)
		}
	})
}
