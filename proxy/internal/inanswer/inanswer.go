// Package inanswer records the request in whose answer a remote server sent a message, for example a log
// message. With the id of the request in wire.Message.Beside, the front sends the message to the client
// that waits for this answer, even if several requests are in flight.
package inanswer

// A *To is the wire.Message.Beside of a message in the answer to the request with this raw id.
type To struct{ ID []byte }

// Of returns the id in a *To, and nil for any other value.
func Of(beside any) []byte {
	if to, ok := beside.(*To); ok {
		return to.ID
	}
	return nil
}
