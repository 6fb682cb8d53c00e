package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/attache-mcp/attache/sessionstate/filelock"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A fileKind is a kind of file that decides who somebody is.
type fileKind struct {
	rules   textfile.Rules
	failure error  // what errors wrap
	setting string // what names the file, for errors
	missing string // what to do where there is none
}

var (
	// keyFile has room for more than ten thousand keys. It may be a link, as mounted
	// secrets are.
	keyFile = fileKind{textfile.Rules{Max: 4 << 20, Closed: 0o077}, ErrFile, "identity.keys_file", "make it with attache key create"}
	// keySetFile is public, but whoever can write it can be any principal. Its errors are
	// wrapped by keyCache.
	keySetFile  = textfile.Rules{Max: maxKeySetBytes, Closed: 0o022, Owned: true}
	tokenFile   = fileKind{textfile.Rules{Max: maxTokenBytes, Closed: 0o077}, ErrTokenFile, "the path of the token file", "write it"}
	sessionFile = fileKind{textfile.Rules{Max: 64 << 10, Closed: 0o077, NoLink: true, Owned: true}, ErrSessionFile, "the path of the session file", "write it"}
)

// read returns the content of file and what it was when it was opened.
func (k fileKind) read(file string) ([]byte, fs.FileInfo, error) {
	data, info, err := textfile.Read(file, k.rules)
	if err != nil {
		return nil, nil, k.error(file, err)
	}
	return data, info, nil
}

// error says what is wrong with file, and what to do.
func (k fileKind) error(file string, err error) error {
	var path *fs.PathError
	switch errors.As(err, &path); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s: %w: %s or correct %s", k.failure, file, path.Err, k.missing, k.setting)
	case path != nil:
		return fmt.Errorf("%w: %s: %w: see whether the file and its directory are yours", k.failure, file, path.Err)
	case errors.Is(err, textfile.ErrNotRegular), errors.Is(err, textfile.ErrDirectory):
		return fmt.Errorf("%w: %s %w: correct %s", k.failure, file, err, k.setting)
	}
	return fmt.Errorf("%w: %s %w", k.failure, file, err)
}

// content says what is wrong in the text of file: err, behind its place if it has
// one.
func (k fileKind) content(file string, err error) error {
	var place *placeError
	var syntax *textfile.SyntaxError
	switch {
	case errors.As(err, &place) && place.at != nil:
		return fmt.Errorf("%w: %s:%w", k.failure, file, place)
	case errors.As(err, &syntax) && syntax.Line > 0:
		return fmt.Errorf("%w: %s:%w", k.failure, file, syntax)
	}
	return fmt.Errorf("%w: %s: %w", k.failure, file, err)
}

// lockPatience is how long to wait for another "attache key", which takes milliseconds.
const lockPatience = 30 * time.Second

// lock waits until no other process or goroutine holds the lock on file. The file stays,
// since to remove it would race with a process that waits for it.
func lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(f, lockPatience); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w: another attache key is at work: try again", file, err)
	}
	return func() { _ = f.Close() }, nil
}
