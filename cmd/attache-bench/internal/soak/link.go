package soak

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// patience is how long a request may take before it counts as never answered: long enough for a
// busy machine.
const patience = 3 * time.Minute

// A request is a request of a client. Its number is unique in the run.
type request struct {
	number     int
	method     string
	name       string // of the tool, or the URI
	key        string // in the result of a tool or a resource
	size       int    // of the text in the result
	body       []byte
	id         string        // as raw JSON
	slow       bool          // the client reads the answer slowly
	written    chan struct{} // closed when the link has written the request; over HTTP, just before
	cancelled  atomic.Bool
	succeeded  bool // a result arrived
	start, end time.Time
}

// A link is the connection of a client.
type link interface {
	// call sends a request and returns the line that answers it.
	call(ctx context.Context, q *request) ([]byte, error)
	// notify sends a notification.
	notify(ctx context.Context, body []byte) error
	// end ends the session, orderly or abruptly. It returns when everything that belongs
	// to this client has ended.
	end(orderly bool) error
}

var (
	// errGone is returned for requests whose link the client itself has ended.
	errGone = errors.New("the client went away")
	// errLost is returned when the link broke.
	errLost = errors.New("the connection broke")
)
