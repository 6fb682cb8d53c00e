package flow

import (
	"io"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Each reads the lines of a peer to the end of the stream. It calls whole for each line, with a message
// that was not scanned and is reused; last says that no other line is buffered. For a line over the
// hold limit it calls long, with the first part. Before each line it calls await, which may be nil.
// handled is true if all lines that were read were handled: then err is that of the reader, nil at the
// end of the stream. Otherwise err is that of whole or long.
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
			break // the pump will get the error again
		}
		env.Feed(chunk)
	}
	return wire.Oversize(from, env)
}
