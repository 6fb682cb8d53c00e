package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// ReadAtMost returns the content of a regular file of at most limit bytes.
func ReadAtMost(path string, limit int64) ([]byte, error) {
	data, _, err := textfile.Read(path, textfile.Rules{Max: limit})
	return data, err
}

// Reason returns err without the path or paths, which the caller names itself.
func Reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// Unreadable returns an error that says why a file that a person named could not be read and
// what to do, without its path.
func Unreadable(err error) error {
	err = Reason(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: correct the path", err)
	case errors.Is(err, textfile.ErrDirectory), errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%w: name a file in it", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: let this user read it", err)
	case errors.Is(err, textfile.ErrTooLarge), errors.Is(err, textfile.ErrNotRegular):
		return fmt.Errorf("%w: name another file", err)
	}
	return err
}
