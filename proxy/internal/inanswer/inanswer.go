// Package inanswer passes on which request a remote server was answering when it sent another message. The
// id of the request is in wire.Message.Beside, so the front can send the message to the client that
// waits for the answer, also if several requests are in flight.
package inanswer

// To is the wire.Message.Beside of messages in the answer to the request with this raw id.
type To struct{ ID []byte }

// Of returns the id in a *To, and nil for any other value.
func Of(beside any) []byte {
	if to, ok := beside.(*To); ok {
		return to.ID
	}
	return nil
}
