package room

import (
	"bytes"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

func TestBorrow(t *testing.T) {
	for _, size := range []int{1, Smallest, Smallest + 1, 5 << 20} {
		r := Borrow(size)
		if len(r.Bytes) != 0 || cap(r.Bytes) < size || cap(r.Bytes) >= 2*max(size, Smallest) {
			t.Errorf("%d bytes have room for %d", size, cap(r.Bytes))
		}
		r.Bytes = append(r.Bytes, 'x')
		r.Release()
	}
	if r := Borrow(Smallest << len(free)); r != nil {
		t.Errorf("there is room for %d bytes", cap(r.Bytes))
	}
}

// Memory that somebody holds is not lent again.
func TestHold(t *testing.T) {
	r := Borrow(1)
	r.Hold()
	r.Release()
	r.Bytes = append(r.Bytes, 'x')
	for range 100 {
		other := Borrow(1)
		if other == r {
			t.Fatal("it was lent twice")
		}
		defer other.Release()
	}
	r.Release()
}

// A line that is kept is a copy, unless it may be kept as it is.
func TestKeep(t *testing.T) {
	lent := Borrow(1)
	defer lent.Release()
	for _, c := range []struct {
		name           string
		size           int
		fixed          bool
		lease          wire.Lease
		shared, leased bool
	}{
		{name: "small", size: 100},
		{name: "large", size: 2 * Smallest, leased: true},
		{name: "fixed", size: 2 * Smallest, fixed: true, shared: true},
		{name: "lent", size: 2 * Smallest, lease: lent, shared: true, leased: true},
	} {
		var m wire.Message
		m.Reset(wire.Client, append(bytes.Repeat([]byte("x"), c.size), '\n'))
		m.Fixed, m.Lease = c.fixed, c.lease
		line, lease := Keep(&m)
		if !bytes.Equal(line, m.Line()) {
			t.Errorf("%s: %d bytes were kept", c.name, len(line))
		}
		if shared := &line[0] == &m.Line()[0]; shared != c.shared || (lease != nil) != c.leased {
			t.Errorf("%s: shared %t, lease %v", c.name, shared, lease)
		}
		if lease != nil {
			lease.Release()
		}
	}
}
