//go:build !unix

package pgserver

import (
	"errors"
	"syscall"
)

// attributes returns an error: the scripts that run the servers need Unix.
func attributes(string) (*syscall.SysProcAttr, error) {
	return nil, errors.New("PostgreSQL is started on Unix only")
}
