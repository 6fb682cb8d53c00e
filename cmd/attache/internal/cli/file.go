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

// IsMissing reports whether err says that a file does not exist. This includes ENOTDIR, because the home
// directory of a service may be /dev/null.
func IsMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Reason returns err without its path or paths. The caller adds the path itself.
func Reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// Unreadable returns an error about a file that could not be read, with what to do and without the path.
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
