// Package httpstatus passes the HTTP status of a remote server's error to the front, which answers its
// client with the same status. The status is in wire.Message.Beside of the reply, so the bytes of the
// error pass unchanged, and the relay needs to know nothing of HTTP.
package httpstatus

// A response is what the front reads of the remote server's response.
type response struct {
	status     int
	retryAfter string
}

// Beside returns the wire.Message.Beside of replies with that status and Retry-After. It returns nil
// unless the client may try again later (429 and 5xx): a client would relate any other status to its own
// credential or session.
func Beside(status int, retryAfter string) any {
	if status != 429 && (status < 500 || status > 599) {
		return nil
	}
	return &response{status, retryAfter}
}

// BesideDiscover is Beside for replies to server/discover: to that, most refusals with a status of 4xx tell a
// client that the server is of an earlier revision.
func BesideDiscover(status int, retryAfter string) any {
	if status >= 400 && status < 500 && status != 401 && status != 403 {
		return &response{status, retryAfter}
	}
	return Beside(status, retryAfter)
}

// Of returns the status and the Retry-After of a value that Beside or BesideDiscover returned. The status is 0
// for any other value. The Retry-After may be empty.
func Of(beside any) (status int, retryAfter string) {
	if r, ok := beside.(*response); ok {
		return r.status, r.retryAfter
	}
	return 0, ""
}
