package inbox

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A slowRelay takes no line until release is closed.
type slowRelay struct{ release chan struct{} }

func (r slowRelay) Try(*wire.Message) bool       { <-r.release; return true }
func (slowRelay) Line(*wire.Message, bool) error { return nil }
func (slowRelay) Lines([]byte, io.Reader) error  { return nil }
func (slowRelay) End()                           {}

// A blocked Put resumes when the relay, which got the first line by Try, has taken all lines.
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
			t.Fatalf("%d lines were put before the relay took any", n)
		}
		close(relay.release)
		synctest.Wait()
		if n := put.Load(); n != int64(room/size+2) {
			t.Errorf("%d lines were put after the relay took all", n)
		}
	})
}
