package remote

import (
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A releaseCounter is a lease that counts its releases.
type releaseCounter int

func (c *releaseCounter) Hold()    {}
func (c *releaseCounter) Release() { *c++ }

// The memory of a message is released when it has been written, but not after a failed attempt,
// because the transport may still read it.
func TestBodyReleases(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int
		steps string // o: opened, w: written, d: dropped
		want  releaseCounter
	}{
		{"not sent", 10, "d", 1},
		{"sent", 10, "owd", 1},
		{"sent, dropped twice", 10, "owdd", 1},
		{"sent, too long to keep", 1, "owd", 1},
		{"failed", 10, "od", 0},
		{"failed and sent", 10, "oowd", 0},
		{"failed and sent, too long to keep", 1, "oowd", 0},
		{"dropped before it was written", 10, "odw", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l ledger
			l.init(t.Context(), c.limit)
			l.enter(2)
			var released releaseCounter
			b := &body{line: []byte("{}"), lease: wire.Lease(&released), ledger: &l}
			for _, step := range c.steps {
				switch step {
				case 'o':
					if r, err := b.open(); err != nil || r == nil {
						t.Fatal(err)
					}
				case 'w':
					b.markWritten()
				case 'd':
					b.drop()
				}
			}
			if released != c.want {
				t.Errorf("the lease was released %d times, want %d", released, c.want)
			}
			if l.sending != 0 || l.kept != 0 {
				t.Errorf("%d bytes are being sent, %d are kept", l.sending, l.kept)
			}
		})
	}
}

// The memory of a message is not released while bytes is in use, even if the transport has written
// it: a server may answer before that.
func TestBytesAreHeld(t *testing.T) {
	var l ledger
	l.init(t.Context(), 1)
	l.enter(2)
	var released releaseCounter
	b := &body{line: []byte("{}"), lease: &released, ledger: &l}
	if _, err := b.open(); err != nil {
		t.Fatal(err)
	}
	line := b.bytes()
	b.markWritten()
	if released != 0 {
		t.Errorf("the memory of %q was released", line)
	}
}
