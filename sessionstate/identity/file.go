package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/sessionstate/filelock"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A fileKind is a kind of file that identifies callers.
type fileKind struct {
	rules   textfile.Rules
	failure error  // the error that all others wrap
	setting string // the setting that names the file, for errors
	missing string // the remedy if the file does not exist
}

var (
	// keyFile may have more than ten thousand keys. It may be a link, because mounted secrets
	// are links.
	keyFile = fileKind{textfile.Rules{Max: 4 << 20, Closed: 0o077}, ErrFile, "identity.keys_file", "make it with attache key create"}
	// keySetFile is public, but whoever can write it can be any principal. keyCache wraps its
	// errors.
	keySetFile  = textfile.Rules{Max: maxKeySetBytes, Closed: 0o022, Owned: true}
	tokenFile   = fileKind{textfile.Rules{Max: maxTokenBytes, Closed: 0o077}, ErrTokenFile, "the path of the token file", "write it"}
	sessionFile = fileKind{textfile.Rules{Max: 64 << 10, Closed: 0o077, NoLink: true, Owned: true}, ErrSessionFile, "the path of the session file", "write it"}
)

// read returns the content of file, and its FileInfo from before it was read.
func (k fileKind) read(file string) ([]byte, fs.FileInfo, error) {
	data, info, err := textfile.Read(file, k.rules)
	if err != nil {
		return nil, nil, k.error(file, err)
	}
	return data, info, nil
}

// error returns an error that says what is wrong with file and what to do.
func (k fileKind) error(file string, err error) error {
	path, _ := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s: %w: %s or correct %s", k.failure, file, path.Err, k.missing, k.setting)
	case path != nil && errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %s: %w: make room for it", k.failure, file, path.Err)
	case path != nil:
		return fmt.Errorf("%w: %s: %w: see whether the file and its directory are yours", k.failure, file, path.Err)
	case errors.Is(err, textfile.ErrNotRegular), errors.Is(err, textfile.ErrDirectory):
		return fmt.Errorf("%w: %s %w: correct %s", k.failure, file, err, k.setting)
	}
	return fmt.Errorf("%w: %s %w", k.failure, file, err)
}

// content returns the error for err in the content of file, with its line and column if known.
func (k fileKind) content(file string, err error) error {
	if place, ok := errors.AsType[*textfile.SyntaxError](err); ok && place.Line > 0 {
		return fmt.Errorf("%w: %s:%w", k.failure, file, place)
	}
	return fmt.Errorf("%w: %s: %w", k.failure, file, err)
}

// lockTimeout is how long to wait for another "attache key", which takes milliseconds.
const lockTimeout = 30 * time.Second

// lock waits until no other process or goroutine holds the lock on file, which is a file beside it
// with the same owner. Unlocking does not remove that: it would race with a process that waits for
// the lock.
func lock(file string) (unlock func(), err error) {
	name := file + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		if err = textfile.KeepOwner(f, file); err != nil {
			_ = f.Close()
		}
	case errors.Is(err, fs.ErrExist): // perhaps a link: it gets no other owner
		f, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(f, lockTimeout); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w: another attache key command holds it: try again", name, err)
	}
	return func() { _ = f.Close() }, nil
}
