package identity

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

const (
	// DefaultPrefix is the prefix of keys unless another one is configured.
	DefaultPrefix = "atk"

	secretLength = 32 // characters of 5 bits
	idLength     = 8
)

// Create makes a key for the owner described by a, and adds its entry to file. It creates the
// file and its directory if they are missing. The key is <prefix>_<id>_<32 random characters>;
// an empty prefix means [DefaultPrefix]. The file stores only the hash, so the key cannot be
// read again. expiry counts from now; 0 means never.
//
// Errors about the file wrap [ErrFile]; others are invalid arguments. After an error no key was
// made.
func Create(file string, a Attributes, prefix string, expiry time.Duration, now time.Time) (key string, e Entry, err error) {
	if key, e, err = NewKey(a, prefix, expiry, now); err != nil {
		return "", Entry{}, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", Entry{}, keyFile.error(file, err)
	}
	err = edit(file, func(entries []Entry) ([]Entry, error) {
		for slices.ContainsFunc(entries, func(other Entry) bool { return other.ID == e.ID }) {
			if key, e, err = NewKey(a, prefix, expiry, now); err != nil {
				return nil, err
			}
		}
		return append(entries, e), nil
	})
	if err != nil {
		return "", Entry{}, err
	}
	return key, e, nil
}

// NewKey makes a key and its entry, but does not store them. The arguments are those of
// [Create]; an error means that one of them is invalid.
func NewKey(a Attributes, prefix string, expiry time.Duration, now time.Time) (key string, e Entry, err error) {
	prefix = cmp.Or(prefix, DefaultPrefix)
	if err := errors.Join(CheckPrefix(prefix), checkAttributes(a), checkExpiry(expiry)); err != nil {
		return "", Entry{}, err
	}
	now = now.UTC().Truncate(time.Second)
	// Empty lists become nil, as they are after the entry is read back.
	a.Roles, a.Permissions = append([]string(nil), a.Roles...), append([]string(nil), a.Permissions...)
	e = Entry{ID: strings.ToLower(rand.Text()[:idLength]), Attributes: a, Created: now}
	if expiry > 0 {
		e.Expires = now.Add(expiry).Truncate(time.Second)
	}
	key = prefix + "_" + e.ID + "_" + (rand.Text() + rand.Text())[:secretLength]
	e.SHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
	return key, e, nil
}

// List returns the entries of file in order. Its errors wrap [ErrFile], and fs.ErrNotExist if
// there is no such file.
func List(file string) ([]Entry, error) {
	data, _, err := keyFile.read(file)
	if err != nil {
		return nil, err
	}
	return parseFile(file, data)
}

// Revoke revokes the key with the given id as of now. Revoking a key again does nothing. For an
// unknown id the error is [ErrUnknownKey]; other errors wrap [ErrFile].
//
// Sessions notice within the cache time of their [Resolver].
func Revoke(file, id string, now time.Time) error {
	if _, err := os.Stat(file); err != nil {
		return keyFile.error(file, err)
	}
	return edit(file, func(entries []Entry) ([]Entry, error) {
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("%w: no entry has the id %s: see attache key list", ErrUnknownKey, quote(id))
		}
		if entries[i].Revoked.IsZero() {
			entries[i].Revoked = now.UTC().Truncate(time.Second)
		}
		return entries, nil
	})
}

// edit replaces the entries of file with the result of change. A lock excludes all other
// editors in this and other processes.
func edit(file string, change func([]Entry) ([]Entry, error)) error {
	// Follow a link first, or the rename would replace it with a file.
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	unlock, err := lock(file)
	if err != nil {
		return keyFile.error(file, err)
	}
	defer unlock()
	old, _, err := keyFile.read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := parseFile(file, old)
	if err != nil {
		return err
	}
	if entries, err = change(entries); err != nil {
		return err
	}
	data, err := withEntries(old, entries)
	if err != nil {
		return keyFile.content(file, err)
	}
	if err := textfile.Replace(file, data); err != nil {
		return keyFile.error(file, err)
	}
	return nil
}

// CheckPrefix returns an error unless prefix has only characters that are safe in shells and
// headers.
func CheckPrefix(prefix string) error {
	if prefix == "" || len(prefix) > 32 || strings.ContainsFunc(prefix, func(r rune) bool { return !isKeyRune(r) && r != '_' }) {
		return fmt.Errorf("%.40q is not a prefix for keys: write at most 32 letters, digits, dashes and underscores, such as atk", prefix)
	}
	return nil
}

func checkExpiry(expiry time.Duration) error {
	if expiry != 0 && expiry < time.Second {
		return fmt.Errorf("expiry %v is less than a second: give a longer time, or none for a key that does not expire", expiry)
	}
	return nil
}

// checkAttributes returns an error if a has a value that cannot be stored or makes no sense.
func checkAttributes(a Attributes) error {
	words := []string{a.User, a.Tenant, a.Email, a.Plan, a.Scope}
	for _, word := range slices.Concat(words, a.Roles, a.Permissions) {
		if !isWord(word) {
			return fmt.Errorf("%.40q: leave out line breaks, control characters and space around it; at most 1024 bytes are allowed", word)
		}
	}
	if slices.Contains(slices.Concat(a.Roles, a.Permissions), "") {
		return errors.New("a role or permission is empty: leave it out")
	}
	switch a.Trust {
	case "", sessionstate.Direct, sessionstate.Sandboxed:
		return nil
	}
	return fmt.Errorf("trust %.40q: make it direct or sandboxed", a.Trust)
}
