package cli

import (
	"fmt"
)

// The exit statuses that are attache's own. A wrapped server's is passed on.
const (
	ExitFailure = 1
	ExitUsage   = 2
)

// An ExitError ends the program with a status. Everything that a person must know has been
// printed before.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ExitWith returns the error that ends the program with a status, nil for 0.
func ExitWith(status int) error {
	if status == 0 {
		return nil
	}
	return ExitError(status)
}

// A UsageError is a mistake in how attache was called: exit status 2.
type UsageError struct{ text string }

func (e UsageError) Error() string { return e.text }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Sprintf(format, args...)}
}

// ExitNotStarted is the status of a server that could not be started, as in
// shells.
const ExitNotStarted = 127
