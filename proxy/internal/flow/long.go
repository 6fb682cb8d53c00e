package flow

import "github.com/attache-mcp/attache/proxy/wire"

// A Long writes a long line of a peer in parts, or drops it.
type Long struct {
	To   *wire.Writer
	Drop bool
}

// Part writes a part that another follows.
func (l Long) Part(chunk []byte) error {
	if l.Drop {
		return nil
	}
	return l.To.Chunk(chunk, true)
}

// End writes the last part. It ends a line that the peer did not end, because messages of attache's
// own follow on the next line.
func (l Long) End(chunk []byte) error {
	if l.Drop {
		return nil
	}
	if n := len(chunk); n > 0 && chunk[n-1] == '\n' {
		return l.To.Chunk(chunk, false)
	}
	if err := l.To.Chunk(chunk, true); err != nil {
		return err
	}
	return l.To.Chunk([]byte{'\n'}, false)
}
