package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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
	// DefaultPrefix begins a key where no other is configured.
	DefaultPrefix = "atk"

	secretLength = 32 // characters of 5 bits
	idLength     = 8
	longestWord  = 1024
)

// Create makes a key for the owner that a describes, and adds its entry to file. It makes the
// file and its directory if they are missing. The key is <prefix>_<id>_<32 random characters>;
// an empty prefix means [DefaultPrefix]. Only this function returns the key: the file has its
// hash. expiry counts from now; 0 means never.
//
// An error wraps [ErrFile] if it is about the file; other errors are mistakes in the
// arguments. In both cases no key was made.
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

// NewKey makes a key and its entry, which it puts nowhere. The arguments are those of [Create],
// and an error is a mistake in them.
func NewKey(a Attributes, prefix string, expiry time.Duration, now time.Time) (key string, e Entry, err error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if err := errors.Join(CheckPrefix(prefix), checkAttributes(a), checkExpiry(expiry)); err != nil {
		return "", Entry{}, err
	}
	now = now.UTC().Truncate(time.Second)
	// Copies, which are nil where there is nothing, as they are read back.
	a.Roles, a.Permissions = append([]string(nil), a.Roles...), append([]string(nil), a.Permissions...)
	e = Entry{ID: strings.ToLower(rand.Text()[:idLength]), Attributes: a, Created: now}
	if expiry > 0 {
		e.Expires = now.Add(expiry).Truncate(time.Second)
	}
	key = prefix + "_" + e.ID + "_" + (rand.Text() + rand.Text())[:secretLength]
	sum := sha256.Sum256([]byte(key))
	e.SHA256 = hex.EncodeToString(sum[:])
	return key, e, nil
}

// List returns the entries of file in their order there. Its errors wrap [ErrFile], and
// fs.ErrNotExist if there is no such file.
func List(file string) ([]Entry, error) {
	data, _, err := keyFile.read(file)
	if err != nil {
		return nil, err
	}
	return parseFile(file, data)
}

// Revoke revokes the key with the given id as of now. To revoke a key again is no error and
// changes nothing. For an unknown id the error is [ErrUnknownKey]; other errors wrap
// [ErrFile].
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

// edit replaces the entries of file by what change makes of them. Of several
// editors, in this process or others, one works at a time.
func edit(file string, change func([]Entry) ([]Entry, error)) error {
	// A link is followed here, or the rename would put a file in its place.
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	unlock, err := lock(file + ".lock")
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

// CheckPrefix keeps keys to characters that survive every shell and header.
func CheckPrefix(prefix string) error {
	if prefix == "" || len(prefix) > 32 || strings.ContainsFunc(prefix, func(r rune) bool { return !isKeyRune(r) && r != '_' }) {
		return fmt.Errorf("%.40q is no prefix for keys: write at most 32 letters, digits, dashes and underscores, such as atk", prefix)
	}
	return nil
}

func isKeyRune(r rune) bool {
	return r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func checkExpiry(expiry time.Duration) error {
	if expiry != 0 && expiry < time.Second {
		return fmt.Errorf("expiry %v: give a time ahead, or none for a key without end", expiry)
	}
	return nil
}

// checkAttributes says what of a could not be written down, or not be meant.
func checkAttributes(a Attributes) error {
	words := []string{a.User, a.Tenant, a.Email, a.Plan, a.Scope}
	for _, word := range slices.Concat(words, a.Roles, a.Permissions) {
		if !isWord(word) {
			return fmt.Errorf("%.40q: leave out line breaks, control characters and space around it", word)
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
