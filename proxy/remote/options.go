package remote

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Options configure a Server. URL is required; for the rest, the zero value is a default.
type Options struct {
	// URL is the address of the server: http or https, without a user or a password.
	URL string

	// Header is sent with every request, unless the request has a header of that name for another
	// reason, such as Accept. Its names must be canonical (http.CanonicalHeaderKey). Nobody may change
	// the map after Start, because all requests read it without a lock.
	Header http.Header

	// Credentials, if not nil, authenticate the requests.
	Credentials Credentials

	// Transport sends the requests. Many servers may share one. If it is nil, the Server uses
	// NewTransport with no options.
	Transport http.RoundTripper

	// Hold is the length in bytes up to which a message to the server is held whole, and the
	// limit for the unfinished messages of the server together; 0 means 8 MiB. A longer message
	// passes while it arrives, and cannot be sent again.
	Hold int

	// FirstByte is how long the server may take to begin its answer; 0 means forever. A server
	// that answers with JSON begins when the tool has ended. The time begins anew with each attempt.
	// When it is over, the client gets an error, and the request is not sent again.
	FirstByte time.Duration

	// Forward, if not nil, returns the headers that the client sent with the request of that raw
	// id, nil for none. Those of W3C Trace Context and Baggage are sent on, unless _meta has such a
	// context too. Headers that mirror arguments (Mcp-Param-…) which the tool does not have are sent
	// on, once the server has listed the tool.
	Forward func(id []byte) http.Header

	// Wait is how long a message waits while the server cannot be reached or answers 503 with
	// Retry-After, if it was reached before; 0 means not at all. A message that the server may have
	// executed does not wait, unless it may be executed twice, such as tools/list.
	Wait time.Duration

	// Log receives messages for people; nil discards them.
	Log *slog.Logger
}

// Credentials authenticate requests. Their methods are called from many goroutines.
type Credentials interface {
	// Set sets the headers of a request, such as Authorization. If it returns an error, the
	// request is not sent and the client gets the error. It is called for each attempt of a request.
	Set(ctx context.Context, h http.Header) error

	// Refused is called when the server answers 401 or 403. It reports whether Set now has
	// other credentials; then the request is sent again, once. If it returns an error, the client
	// gets the error.
	Refused(ctx context.Context, r Refusal) (again bool, err error)
}

// A Refusal is the answer of a server that does not accept a credential.
type Refusal struct {
	Status    int         // 401 or 403
	Sent      http.Header // the headers of the refused request; Set may give others by now
	Challenge []string    // the values of WWW-Authenticate
	Said      string      // the beginning of the text
}
