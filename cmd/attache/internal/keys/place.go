package keys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/identity"
	"github.com/attache-mcp/attache/sessionstate/keystore"
)

// A Place is the place of keys: the key file, or the database that several machines share.
type Place interface {
	fmt.Stringer
	// Create creates a key like [identity.Create].
	Create(ctx context.Context, a identity.Attributes, prefix string, expiry time.Duration, now time.Time) (key string, e identity.Entry, err error)
	// List returns the keys; the error is [ErrNoFile] if there is no file yet.
	List(ctx context.Context) ([]identity.Entry, error)
	// Revoke revokes a key like [identity.Revoke].
	Revoke(ctx context.Context, id string, now time.Time) error
}

// Find returns the place of the keys of the settings.
func Find(p cli.Process, s *config.Settings) (Place, error) {
	url, err := s.Store.Address(p)
	switch {
	case err != nil:
		return nil, cli.Usagef("%v", err)
	case url != "":
		return openShared(url)
	case s.Identity.KeysFile == "":
		return nil, cli.Usagef("there is no place for keys: name a file in identity.keys_file of a configuration, and that with --config")
	}
	return file(s.Identity.KeysFile), nil
}

type file string

func (f file) String() string { return string(f) }

// Create implements [Place].
func (f file) Create(_ context.Context, a identity.Attributes, prefix string, expiry time.Duration, now time.Time) (string, identity.Entry, error) {
	key, e, err := identity.Create(string(f), a, prefix, expiry, now)
	return key, e, usage(err)
}

// ErrNoFile is returned for a key file that does not exist. A missing socket of a database is a
// different error.
var ErrNoFile = errors.New("there is no key file")

// List implements [Place].
func (f file) List(context.Context) ([]identity.Entry, error) {
	entries, err := identity.List(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoFile
	}
	return entries, usage(err)
}

// Revoke implements [Place].
func (f file) Revoke(_ context.Context, id string, now time.Time) error {
	return usage(identity.Revoke(string(f), id, now))
}

func usage(err error) error {
	if err == nil {
		return nil
	}
	return cli.Usagef("%v", err)
}

// A sharedStore is the database of store.url.
type sharedStore struct {
	*keystore.Store
	server *database.Server
}

// openShared returns the keys in a database.
func openShared(url string) (Place, error) {
	server, err := database.Connect(database.ServerOptions{URL: url, Timeouts: database.PersonTimeouts()})
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	return sharedStore{keystore.New(server.Open(keystore.Schema())), server}, nil
}

func (s sharedStore) String() string { return s.server.Address() }

// Create implements [Place]. It checks the attributes before it asks the database, so that only
// mistakes in them are usage errors.
func (s sharedStore) Create(ctx context.Context, a identity.Attributes, prefix string, expiry time.Duration, now time.Time) (string, identity.Entry, error) {
	if _, _, err := identity.NewKey(a, prefix, expiry, now); err != nil {
		return "", identity.Entry{}, usage(err)
	}
	key, e, err := s.Store.Create(ctx, a, prefix, expiry, now)
	return key, e, database.Denied(err)
}

// Revoke implements [Place]. An unknown id is a usage error.
func (s sharedStore) Revoke(ctx context.Context, id string, now time.Time) error {
	err := s.Store.Revoke(ctx, id, now)
	if errors.Is(err, identity.ErrUnknownKey) {
		return usage(err)
	}
	return database.Denied(err)
}

// Import imports the keys of the key file into the database of store.url.
func Import(ctx context.Context, p cli.Process, s *config.Settings) error {
	place, err := Find(p, s)
	if err != nil {
		return err
	}
	to, ok := place.(sharedStore)
	if !ok {
		return cli.Usagef("there is no database to import keys into: set store.url (docs/scale.md); without it the keys of %s are used as they are", place)
	}
	entries, err := identity.List(s.Identity.KeysFile)
	switch {
	case s.Identity.KeysFile == "":
		return cli.Usagef("there is no key file to import: name it in identity.keys_file of a configuration")
	case errors.Is(err, fs.ErrNotExist):
		return cli.Usagef("there is no key file to import: %s is not there: correct identity.keys_file", s.Identity.KeysFile)
	case err != nil:
		return usage(err)
	}
	n, err := to.Import(ctx, entries)
	if err != nil {
		return fmt.Errorf("nothing of %s was imported: %w", s.Identity.KeysFile, database.Denied(err))
	}
	fmt.Fprintf(p.Stderr, "attache: imported %s of %s into %s: %d new, %d changed, %d as before\n",
		cli.Plural(len(entries), "key"), s.Identity.KeysFile, to, n.Added, n.Changed, n.Same)
	return nil
}
