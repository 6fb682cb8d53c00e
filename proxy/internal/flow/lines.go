package flow

import (
	"io"
	"iter"

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
		if await != nil { // before the read, so that a client that does not read fills its own pipe
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

// Parts yields the parts of a long line, each with whether another one follows. r has returned the first, and
// env was fed with it; Parts reads the others, and feeds env with them. If it cannot read, the last part is
// empty, and the next call of r.Next returns the error.
func Parts(r *wire.Reader, first []byte, env *wire.Envelope) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		part, more := first, true
		for yield(part, more) && more {
			var err error
			if part, more, err = r.Next(); err != nil {
				part, more = nil, false
			}
			env.Feed(part)
		}
	}
}

// Drain reads a long line to its end without keeping it, and returns what is known of it.
func Drain(from wire.Peer, r *wire.Reader, env *wire.Envelope) *wire.Message {
	for range Parts(r, nil, env) {
	}
	return wire.Oversize(from, env)
}
