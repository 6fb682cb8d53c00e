package wire

import "io"

// A Sink handles the lines of a peer. Its methods are called from one goroutine at a time.
type Sink interface {
	// Line handles the message on one whole line. m may have been scanned. When Line returns, the
	// caller may reuse m and its bytes, but not bytes that are Fixed. more says that another line
	// follows, so what Line writes may be held back to be written with that. After an error the
	// Sink accepts no more lines.
	Line(m *Message, more bool) error
	// Lines handles lines until the end of from, including a line that is too long to be held. The
	// first line begins with begun, which has no line end and whose memory the Sink keeps.
	Lines(begun []byte, from io.Reader) error
	// End is called once, after all lines, if the peer has closed its end in good order.
	End()
}

// A Trier is a Sink with a Line that never blocks.
type Trier interface {
	Sink
	// Try is Line for a caller that must not wait for the other peer. If it might have to wait, it
	// does nothing and reports false. Otherwise m has the results of the Sink's scan.
	Try(m *Message) bool
}

// A Pusher is a peer that passes its lines to a Sink, in place of an io.Reader. A peer on HTTP is one,
// because its lines come whole.
type Pusher interface {
	// Push sets the Sink for the lines. It is called once, and returns immediately.
	Push(to Sink)
}
