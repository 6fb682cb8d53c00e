package outbox

import (
	"strings"
	"testing"
)

// A spaceReader fails the test when it is asked for no bytes: a body of net/http returns none then, and no
// error, so the caller would ask forever.
type spaceReader struct {
	*strings.Reader
	t *testing.T
}

func (r spaceReader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		r.t.Fatal("a read without space")
	}
	return r.Reader.Read(b)
}

// Each read of a body has space, also the one that finds the end of a body which is as large as a room.
func TestReadBodyHasSpace(t *testing.T) {
	for _, size := range []int{1, firstRoom - 1, firstRoom, firstRoom + 1, 2 * firstRoom} {
		o := New(8 * firstRoom)
		o.Push(refusingRelay{})
		f := &Frame{Out: o}
		body := spaceReader{strings.NewReader(strings.Repeat("x", size)), t}
		if kept, err := f.ReadBody(body, int64(size)); !kept || err != nil || f.Size() != size {
			t.Errorf("%d bytes: kept %t, error %v, size %d", size, kept, err, f.Size())
		}
	}
}
