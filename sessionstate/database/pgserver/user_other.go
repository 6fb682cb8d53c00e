//go:build !unix

package pgserver

import (
	"fmt"
	"syscall"
)

// attributes returns an error: the scripts that run the servers need Unix.
func attributes(string) (*syscall.SysProcAttr, error) {
	return nil, fmt.Errorf("%w: PostgreSQL is started on Unix only", ErrMissing)
}
