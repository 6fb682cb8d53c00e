//go:build unix && !linux

package child

import (
	"errors"
	"syscall"
)

// errNoGuard is what GuardErr returns where the kernel ends nobody for us.
var errNoGuard = errors.New("this system cannot end a process group with the process that made it: the server is relied on to end when its stdin does")

// A guard does nothing on this system; see guard_linux.go.
type guard struct{}

func newGuard() (guard, error)   { return guard{}, errNoGuard }
func (guard) arm(pgid int) error { return errNoGuard }
func (guard) close()             {}

// anyRuns is asked when kill(2) found somebody, which is taken for the answer
// here: at worst the dead are waited for until the grace is over.
func anyRuns(pgid int) bool { return true }

// attributes: the direct child leads a group of its own.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
