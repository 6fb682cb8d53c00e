package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
)

// ErrTokenFile means that the token file is missing, readable by others, or has no token in
// it. Nobody can be identified by it until whoever writes it mends it; the text says how.
var ErrTokenFile = errors.New("token file cannot be used")

// settled is the age from which a file that looks unchanged is unchanged: some
// file systems count time in steps of two seconds.
const settled = 3 * time.Second

// TokenFile returns a function that returns the token (or key) in the file at path, without
// space around it. The function looks at the file each time and reads it again when it was
// replaced or has changed, so a renewed token takes effect. After an error it returns nothing
// of an earlier reading.
//
// The file must be readable by its owner alone. A symbolic link is followed, because mounted
// secrets are links. Renew the file by renaming a new one into its place: a file that is
// written in place may be read half. Errors wrap [ErrTokenFile], and fs.ErrNotExist if there
// is no such file; no error contains the token. The function is safe for use by several
// goroutines.
func TokenFile(path string) func() (string, error) {
	t := &cachedTokenFile{path: path}
	return t.token
}

// A cachedTokenFile is a token file and the token last read from it.
type cachedTokenFile struct {
	path string

	mu   sync.Mutex // guards what follows
	text string
	info fs.FileInfo // of the file when it was read; nil if it is to be read
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
	text := strings.TrimSpace(string(data))
	switch {
	case text == "":
		return "", fmt.Errorf("%w: %s is empty: write the token into it", ErrTokenFile, t.path)
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' ' }):
		return "", fmt.Errorf("%w: %s has something else than one token in it: leave only the token", ErrTokenFile, t.path)
	}
	// The clock of the file system counts here, so none is injected.
	if age := time.Since(info.ModTime()); age > settled {
		t.text, t.info = text, info
	}
	return text, nil
}

// isUnchanged reports whether b is what a was. The mode counts: a file that was
// opened to others is to be refused.
func isUnchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}
