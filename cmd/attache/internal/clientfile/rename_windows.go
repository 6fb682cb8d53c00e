package clientfile

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// patience is how long another program may hold a file open before that is an error. Virus
// scanners and indexers open every new file, and an open file cannot be replaced.
const patience = 2 * time.Second

// rename gives a file the name of another, which it replaces.
func rename(from, to string) error {
	const longest = 50 * time.Millisecond
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		err := os.Rename(from, to)
		if err == nil || !held(err) {
			return err
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%w: close the program that has it open", cli.Reason(err))
		}
		time.Sleep(pause)
	}
}

// held reports whether err may be for a file that is open.
func held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) ||
		errors.Is(err, windows.ERROR_ACCESS_DENIED)
}
