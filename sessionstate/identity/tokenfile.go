package identity

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// settleTime is the age of a file after which a later write changes its modification time:
// some file systems store times in steps of two seconds.
const settleTime = 3 * time.Second

// TokenFile returns a function that returns the token (or key) in the file at path, without
// surrounding space. The function reads the file again when it has changed, so a renewed token
// takes effect. After an error it forgets the old token.
//
// The file must be readable by its owner alone. A symbolic link is followed, because mounted
// secrets are links. To renew the token, rename a new file into its place: a file that is
// written in place may be read half. Errors wrap [ErrTokenFile], and fs.ErrNotExist if there
// is no such file; no error contains the token. The function is safe for use by several
// goroutines.
func TokenFile(path string) func() (string, error) {
	t := &cachedTokenFile{path: path}
	return t.token
}

// A cachedTokenFile is a token file with the token last read from it.
type cachedTokenFile struct {
	path string

	mu   sync.Mutex // guards the fields below
	text string
	info fs.FileInfo // of the file when it was read; nil if text must not be used
}

func (t *cachedTokenFile) token() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if info, err := os.Stat(t.path); err == nil && t.info != nil && isUnchanged(t.info, info) {
		return t.text, nil
	}
	t.info, t.text = nil, ""
	data, info, err := tokenFile.read(t.path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(textfile.TrimMark(data)))
	switch {
	case text == "":
		return "", fmt.Errorf("%w: %s is empty: write the token into it", ErrTokenFile, t.path)
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }):
		return "", fmt.Errorf("%w: %s has something other than one token in it: leave only the token", ErrTokenFile, t.path)
	}
	// The modification time comes from the system's clock, so compare it with that.
	if age := time.Since(info.ModTime()); age > settleTime {
		t.text, t.info = text, info
	}
	return text, nil
}

// isUnchanged reports whether a file has not changed between a and b. The mode counts, because
// a file that was opened to others must be refused.
func isUnchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}
