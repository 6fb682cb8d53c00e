package flow

import (
	"io"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Each reads the lines of a peer to the end of the stream. It calls whole for each, with a message
// that nobody has looked at and that is used again, where last says that no other line is there; and
// long for one over the hold limit, of which chunk is the first part. Before each it calls await,
// unless that is nil. handled is false if the error is that of whole or long, and not the
// reader's; the end of the stream is no error.
func Each(from wire.Peer, r *wire.Reader, await func(), whole func(m *wire.Message, last bool) error, long func(r *wire.Reader, chunk []byte) error) (handled bool, err error) {
	var m wire.Message
	for {
		if await != nil {
			await()
		}
		line, more, err := r.Next()
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return true, err
		case more:
			err = long(r, line)
		default:
			m.Reset(from, line)
			err = whole(&m, !r.Buffered())
			m.GiveBack()
		}
		if err != nil {
			return false, err
		}
	}
}

// Drain reads a long line to its end without keeping it, and returns what is known of it.
func Drain(from wire.Peer, r *wire.Reader, env *wire.Envelope) *wire.Message {
	for more := true; more; {
		var chunk []byte
		var err error
		if chunk, more, err = r.Next(); err != nil {
			break // the pump meets it again
		}
		env.Feed(chunk)
	}
	return wire.Oversize(from, env)
}
