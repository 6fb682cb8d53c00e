package teams

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Refusal is an error whose text is for the agent that asked. It has nothing in it of
// sessions that the agent may not see.
type Refusal string

// Error returns the text.
func (r Refusal) Error() string { return string(r) }

// The refusals that do not depend on a configuration.
const (
	// ErrNoContext: it is not known which session, or which workspace, the caller is of.
	ErrNoContext = Refusal("Session context not available")
	// ErrAgent: there is no such agent, or the caller may not start it.
	ErrAgent = Refusal("Agent not found")
	// ErrTooDeep: the caller was itself started by so many sessions that it may start none.
	ErrTooDeep = Refusal("Too deep: sessions started by sessions may not start more")
	// ErrTarget: the target is unknown, not in the workspace, not visible, ended, or the
	// sender itself. The text is the same for all of these.
	ErrTarget = Refusal("Cannot send message to session")
	// ErrFull: the target has as many unread messages as it may have.
	ErrFull = Refusal("That session has 50 unread messages")
	// ErrSameText: the sender has sent this text to the target within ten minutes.
	ErrSameText = Refusal("You have sent this text there already")
	// ErrNotYours: only a session that the caller started, itself or through others, can
	// be ended by it.
	ErrNotYours = Refusal("Cannot end session")
	// ErrUnavailable: the store cannot be used now.
	ErrUnavailable = Refusal("Teams are not available now")
)

// ErrUnproved is returned by [Store.Attach] to a caller that names a spawned session and
// does not have its token.
var ErrUnproved = errors.New("a session that an agent started is claimed without its token")

// errNoSession is returned for a session that is not in the registry any more.
var errNoSession = errors.New("the session is not registered")

// unavailable returns the error that a caller gets for err. An error of the database becomes
// one that is [ErrUnavailable].
func unavailable(err error) error {
	var refusal Refusal
	switch {
	case err == nil, errors.As(err, &refusal), errors.Is(err, ErrUnproved), errors.Is(err, errNoSession), errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// tooFast refuses what comes faster than limit, and says when to try again.
func tooFast(limit string, wait time.Duration) error {
	tenths := (wait + 99*time.Millisecond) / (100 * time.Millisecond)
	return Refusal(fmt.Sprintf("Rate limit exceeded (%s): try again in %d.%d s", limit, tenths/10, tenths%10))
}
