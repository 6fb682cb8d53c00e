// Package httpstatus says with which status a front answers when a remote server has refused a request.
// The status goes beside the reply (wire.Message.Beside), as the bytes of a server's own error pass
// unchanged and the relay between the two knows nothing of HTTP.
package httpstatus

type relayed struct {
	status     int
	retryAfter string
}

// Beside returns what goes beside the replies of an answer with that status and Retry-After. It is nil
// unless the status says to try again, as 429 and 5xx do: a client would take any other for a statement
// about its own credential or session.
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
