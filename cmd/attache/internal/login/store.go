package login

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// maxScopes is how many scopes are used at most. A server chooses them, and they are kept and requested.
const maxScopes = 500

// A Grant holds the tokens for one remote server, and how to renew them.
type Grant struct {
	URL        string           `json:"url"`      // of the remote server
	Resource   string           `json:"resource"` // the resource that tokens are requested for, or ""
	Issuer     string           `json:"issuer"`
	Token      string           `json:"token_endpoint"`
	Revocation string           `json:"revocation_endpoint,omitempty"`
	ClientID   string           `json:"client_id"`
	Style      oauth2.AuthStyle `json:"auth_style"` // never the automatic one: see secretStyle
	Scopes     []string         `json:"scopes,omitempty"`
	Wanted     []string         `json:"wanted,omitempty"` // scopes that the server has required since
	Expires    time.Time        `json:"expires,omitzero"` // of the access token; zero: unknown
	Obtained   time.Time        `json:"obtained"`
	Ended      string           `json:"ended,omitempty"` // why the grant is no longer valid
	CanRenew   bool             `json:"can_renew"`       // there is a refresh token

	Secrets `json:"-"`
}

// Secrets are the members of a grant to keep secret.
type Secrets struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
	Client  string `json:"client_secret,omitempty"` // of a client that registered itself
}

// Usable reports whether requests can be sent with the grant, possibly after renewing its token.
func (g *Grant) Usable(now time.Time) bool {
	return g.Ended == "" && (g.CanRenew || !g.expired(now))
}

// expired reports whether the access token has expired, or will so soon that a request could be
// refused.
func (g *Grant) expired(now time.Time) bool {
	return !g.Expires.IsZero() && !now.Add(leeway).Before(g.Expires)
}

// has reports whether the token of the grant has the scopes.
func (g *Grant) has(scopes []string) bool {
	return len(union(g.Scopes, scopes)) == len(union(g.Scopes))
}

// Describe returns how long a login is valid and whether it can be renewed, for people.
func (g *Grant) Describe(now time.Time) string {
	text := ""
	if len(g.Scopes) > 0 {
		text = " (" + cli.Printable(strings.Join(g.Scopes, " ")) + ")"
	}
	switch {
	case g.Ended != "":
		return text + ": has ended: " + cli.Printable(g.Ended)
	case !g.Usable(now):
		return text + ": has ended " + g.Expires.Local().Format(time.DateTime)
	case g.CanRenew:
		text += ", renews itself"
	case !g.Expires.IsZero():
		text += ", until " + g.Expires.Local().Format(time.DateTime)
	}
	if len(g.Wanted) > 0 {
		text += "; the server wants more rights (" + cli.Printable(strings.Join(g.Wanted, " ")) + "): log in again"
	}
	return text
}

// leeway is how long before it expires a token is renewed.
const leeway = 10 * time.Second

// A Store is the directory with the user's grants: a file for each server that only its owner can
// read. If the system has a key ring, the secrets in the files are encrypted with a key in the key
// ring. Any number of processes may use a store.
type Store struct {
	Dir  string
	Ring Ring // nil: none
}

// A Ring stores one text for the user.
type Ring interface {
	// Get returns the text. The error is ErrNoKey if there is none yet.
	Get() (string, error)
	Set(text string) error
}

var (
	// ErrNoKey is returned by a key ring that has no key yet. The caller creates one.
	ErrNoKey = errors.New("the key ring has no key of attache yet")
	// ErrNoGrant is returned for a server that the user is not logged in to.
	ErrNoGrant = errors.New("nobody is logged in")
)

// maxGrant is the maximum size of a file of the store in bytes.
const maxGrant = 256 << 10

// A record is the content of a file of the store.
type record struct {
	*Grant
	Plain *Secrets `json:"secrets,omitempty"`
	Box   string   `json:"sealed,omitempty"` // secrets as JSON, encrypted
}

// path returns the path of a file for a server. Its name is a hash, because an address may be too long for a
// name, and may have characters that a name cannot have.
func (s Store) path(url, extension string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:])+extension)
}

// Lock locks the grant for a server against changes by other processes. The system releases the lock of a
// process that ends. An error says whether the lock was not free until ctx was done, or cannot be made.
func (s Store) Lock(ctx context.Context, url string) (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	l := flock.New(s.path(url, ".lock"), flock.SetPermissions(0o600))
	switch _, err := l.TryLockContext(ctx, 20*time.Millisecond); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("another attache is busy with the same login: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the login cannot be locked: %w", err)
	}
	return func() { _ = l.Unlock() }, nil
}

// Has reports whether there is a grant for a server. It reads no file.
func (s Store) Has(url string) bool {
	if s.Dir == "" {
		return false
	}
	_, err := os.Stat(s.path(url, ".json"))
	return err == nil
}

// Load returns the grant for a server. The error is ErrNoGrant if there is none. It needs no lock, because
// Save replaces the file in one step.
func (s Store) Load(url string) (*Grant, error) {
	r, err := s.read(s.path(url, ".json"))
	if err != nil {
		return nil, err
	}
	if r.URL != url {
		return nil, ErrNoGrant
	}
	if r.Plain != nil {
		r.Secrets = *r.Plain
		return r.Grant, nil
	}
	text, err := s.open(url, r.Box)
	if err == nil {
		err = json.Unmarshal(text, &r.Secrets)
	}
	if err != nil {
		return nil, errors.New("the login cannot be read, because the system's key ring does not give its key: unlock the key ring, or set server.oauth.store to file")
	}
	return r.Grant, nil
}

// read reads a file of the store without decrypting its secrets.
func (s Store) read(path string) (*record, error) {
	if s.Dir == "" {
		return nil, ErrNoGrant
	}
	data, _, err := textfile.Read(path, textfile.Rules{Max: maxGrant, Closed: 0o077})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoGrant
	}
	r := &record{Grant: &Grant{}}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, fmt.Errorf("the login in %s cannot be read: %w", path, err)
	}
	return r, nil
}

// Save writes a grant. The caller holds the lock. If the key ring cannot be used, the secrets are not
// encrypted, and only the mode of the file protects them.
func (s Store) Save(g *Grant) error {
	g.CanRenew = g.Refresh != ""
	r := record{Grant: g}
	secrets, err := json.Marshal(g.Secrets)
	if err != nil {
		return err
	}
	if r.Box, err = s.seal(g.URL, secrets); err != nil {
		r.Plain = &g.Secrets
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(data) >= maxGrant {
		return errors.New("its tokens and scopes are too large")
	}
	textfile.RemoveUnfinished(s.Dir)
	return textfile.Replace(s.path(g.URL, ".json"), append(data, '\n'))
}

// Delete deletes the grant for a server. The caller holds the lock.
func (s Store) Delete(url string) error {
	textfile.RemoveUnfinished(s.Dir)
	return os.Remove(s.path(url, ".json"))
}

// All returns the grants without their secrets. It does not use the key ring.
func (s Store) All() (all []Grant) {
	entries, _ := os.ReadDir(s.Dir)
	for _, e := range entries {
		path := filepath.Join(s.Dir, e.Name())
		if !strings.HasSuffix(path, ".json") {
			continue
		}
		if r, err := s.read(path); err == nil && s.path(r.URL, ".json") == path {
			all = append(all, *r.Grant)
		}
	}
	return all
}

// seal encrypts a text with the key in the key ring (AES-256-GCM). It creates the key if there is none. The
// text belongs to the url: in the file of another server it cannot be decrypted.
func (s Store) seal(url string, text []byte) (string, error) {
	box, err := s.box(true)
	if err != nil {
		return "", err
	}
	sealed := box.Seal(nil, nil, text, []byte(url))
	return base64.StdEncoding.EncodeToString(sealed), nil
}

func (s Store) open(url, sealed string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, err
	}
	box, err := s.box(false)
	if err != nil {
		return nil, err
	}
	return box.Open(nil, nil, data, []byte(url))
}

// box returns the cipher with the key in the key ring. Without a key ring, the error is ErrNoKey.
func (s Store) box(create bool) (cipher.AEAD, error) {
	if s.Ring == nil {
		return nil, ErrNoKey
	}
	text, err := s.Ring.Get()
	if errors.Is(err, ErrNoKey) && create {
		text, err = s.newKey()
	}
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// newKey stores a new key in the key ring, unless another process has stored one meanwhile. It
// returns the key in the key ring.
func (s Store) newKey() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	unlock, err := s.Lock(ctx, "key") // not a URL, so no grant has this lock
	if err != nil {
		return "", err
	}
	defer unlock()
	if text, err := s.Ring.Get(); !errors.Is(err, ErrNoKey) {
		return text, err
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails
	text := base64.StdEncoding.EncodeToString(key)
	return text, s.Ring.Set(text)
}

// union returns the scopes in the lists, each once, at most maxScopes.
func union(lists ...[]string) (all []string) {
	for _, scope := range slices.Concat(lists...) {
		if len(all) >= maxScopes {
			break
		}
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}
