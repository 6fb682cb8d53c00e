package body

import (
	"bytes"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A body within the limit is read completely, also if its length is unknown. Its bytes are free again afterwards.
func TestRead(t *testing.T) {
	const most = 200_000
	text := make([]byte, most+1)
	for i := range text {
		text[i] = byte(i % 251)
	}
	for _, n := range []int{0, 1, 4<<10 - 1, 4 << 10, smallBody, smallBody + 1, Large, Large + 1, most, most + 1} {
		for _, length := range []int{n, -1} {
			l := &limit.Limits{Body: most, Bodies: most + 2}
			b := Buffer{Limits: l, Principal: "ada"}
			got, err := b.Read(iotest.HalfReader(bytes.NewReader(text[:n])), int64(length))
			switch {
			case n > most:
				if !errors.Is(err, ErrTooLarge) {
					t.Errorf("%d bytes, length %d: %v", n, length, err)
				}
			case err != nil || !bytes.Equal(got, text[:n]) || cap(got) == len(got):
				t.Errorf("%d bytes, length %d: %d bytes, capacity %d, %v", n, length, len(got), cap(got), err)
			}
			var m wire.Message
			if b.Lend(&m); n <= most && (m.Lease != nil) != (length > Large-2) {
				t.Errorf("%d bytes, length %d: lent memory: %t", n, length, m.Lease != nil)
			}
			counted := !l.TakeBytes("ada", l.Bodies)
			if large := n > smallBody && n <= most; large && !counted {
				t.Errorf("%d bytes, length %d: not counted", n, length)
			} else if !counted {
				l.GiveBytes("ada", l.Bodies)
			}
			b.Release()
			if !l.TakeBytes("ada", l.Bodies) {
				t.Errorf("%d bytes, length %d: still counted", n, length)
			}
		}
	}
}

// A body gets an error if others take all the bytes, or if it ends early.
func TestReadFails(t *testing.T) {
	early := errors.New("early")
	for _, length := range []int64{smallBody, -1} {
		b := Buffer{Limits: &limit.Limits{Body: 1 << 20, Bodies: 1}}
		if _, err := b.Read(bytes.NewReader(make([]byte, smallBody+1)), length); !errors.Is(err, ErrFull) {
			t.Errorf("length %d: %v", length, err)
		}
		b.Release()
		if _, err := b.Read(iotest.ErrReader(early), 1); !errors.Is(err, early) {
			t.Errorf("length %d: %v", length, err)
		}
	}
}
