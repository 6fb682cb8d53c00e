// Package httpstatus carries the HTTP status of a remote server's refusal to the front, which answers
// its client with the same status. It is the reply's wire.Message.Beside: the bytes of a server's
// error pass unchanged, and the relay between the two knows nothing of HTTP.
package httpstatus

type relayed struct {
	status     int
	retryAfter string
}

// Beside returns the wire.Message.Beside of replies that came with that status and Retry-After. It is
// nil unless the client may try again later (429 and 5xx). A client would think that any other status
// is about its own credential or session.
func Beside(status int, retryAfter string) any {
	if status != 429 && (status < 500 || status > 599) {
		return nil
	}
	return &relayed{status, retryAfter}
}

// Of returns the status and the Retry-After, which may be empty, that Beside was given. The status is 0
// for anything else.
func Of(beside any) (status int, retryAfter string) {
	if r, ok := beside.(*relayed); ok {
		return r.status, r.retryAfter
	}
	return 0, ""
}
