package teams

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Refusal is an error whose text is for the calling agent. It reveals nothing about sessions
// that the agent may not see.
type Refusal string

// Error returns the text.
func (r Refusal) Error() string { return string(r) }

// The refusals that do not depend on a configuration.
const (
	// ErrNoContext means that the session or the workspace of the caller is unknown.
	ErrNoContext = Refusal("Session context not available")
	// ErrAgent means that there is no such agent, or that the caller may not start it.
	ErrAgent = Refusal("Agent not found")
	// ErrTooDeep means that the caller has reached the maximum depth and may start no session.
	ErrTooDeep = Refusal("Too deep: sessions started by sessions may not start more")
	// ErrTarget means that the target is unknown, in another workspace, not visible, ended,
	// or the sender itself. The text is the same for all of these.
	ErrTarget = Refusal("Cannot send message to session")
	// ErrFull means that the target has the maximum number of unread messages.
	ErrFull = Refusal("That session has 50 unread messages")
	// ErrSameText means that the sender has sent the same text to the target within ten minutes.
	ErrSameText = Refusal("You have sent this text there already")
	// ErrNotYours means that neither the caller nor one of its descendants started the session.
	ErrNotYours = Refusal("Cannot end session")
	// ErrUnavailable means that the database cannot be used now.
	ErrUnavailable = Refusal("Teams are not available now")
)

// ErrUnproved is returned by [Store.Attach] if the caller claims a spawned session without its
// token.
var ErrUnproved = errors.New("a session that an agent started is claimed without its token")

// ErrNoSession says that a session was never registered, or was removed from the registry.
var ErrNoSession = errors.New("the session is not registered")

// unavailable returns the error for the caller: it wraps an error of the database in
// [ErrUnavailable].
func unavailable(err error) error {
	var refusal Refusal
	switch {
	case err == nil, errors.As(err, &refusal), errors.Is(err, ErrUnproved), errors.Is(err, ErrNoSession), errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// tooFast returns the refusal for an exceeded rate limit. wait is the time until the next attempt.
func tooFast(limit string, wait time.Duration) error {
	tenths := max((wait+99*time.Millisecond)/(100*time.Millisecond), 1) // the limit may no longer be exceeded
	return Refusal(fmt.Sprintf("Rate limit exceeded (%s): try again in %d.%d s", limit, tenths/10, tenths%10))
}
