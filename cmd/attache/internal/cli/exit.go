package cli

import "fmt"

// The exit statuses of attache itself. The status of a wrapped server is passed on.
const (
	ExitFailure = 1
	ExitUsage   = 2
	// ExitNotStarted is the status if a server could not be started, as in shells.
	ExitNotStarted = 127
)

// An ExitError ends the program with a status. The error message has been printed before.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// ExitWith returns the error that ends the program with a status, or nil for 0.
func ExitWith(status int) error {
	if status == 0 {
		return nil
	}
	return ExitError(status)
}

// A UsageError is an error in the command line. It has exit status 2.
type UsageError struct{ text string }

func (e UsageError) Error() string { return e.text }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Sprintf(format, args...)}
}
