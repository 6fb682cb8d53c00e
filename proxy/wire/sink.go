package wire

import "io"

// A Sink takes the lines of a peer. Its methods are called from one goroutine at a time.
type Sink interface {
	// Line takes the message on a whole line with its line end, which may have been looked at,
	// and returns when it has been handled: message and bytes are the caller's again, but not the
	// bytes of one that is Fixed. more says that the caller has another one, so what becomes of
	// this one may wait for company. The error says that no line is taken any more.
	Line(m *Message, more bool) error
	// Lines takes lines until the end of from, so also one that is too long to be whole. They begin
	// with begun, which has no line end and whose memory is the Sink's.
	Lines(begun []byte, from io.Reader) error
	// End says that the peer closed its end in good order. It is called last and once.
	End()
}

// A Trier is a Sink that takes lines also from those who must not wait.
type Trier interface {
	Sink
	// Try is Line for a caller that must not wait for the other peer. It reports false, and has
	// done nothing, if it might have to wait; else m has what the Sink has read of it.
	Try(m *Message) bool
}

// A Pusher is a peer that hands over its lines itself: those of one that speaks HTTP come whole.
type Pusher interface {
	// Push says where the lines go. It is called once, and does not wait for them.
	Push(to Sink)
}
