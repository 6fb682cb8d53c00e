package assembly

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/identity"
	"github.com/attache-mcp/attache/sessionstate/keystore"
)

// A keyDatabase holds keys that several machines share. It survives a configuration reload.
type keyDatabase struct {
	answers *keystore.Resolver
	hasKeys func() (bool, error) // asks the database at the first call only
	warned  sync.Once            // warns that hasKeys failed
	close   func()
}

// askTime bounds the query whether there are keys.
const askTime = 5 * time.Second

// openKeys returns the keys in a database.
func openKeys(db *database.Server) *keyDatabase {
	store := keystore.New(db.Open(keystore.Schema()))
	k := &keyDatabase{answers: keystore.NewResolver(store, identity.DefaultCache, nil)}
	k.close = db.OnNotice(func(payload string) {
		if payload == "" || payload == keystore.Notice {
			k.answers.Refresh()
		}
	})
	k.hasKeys = sync.OnceValues(func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		return store.Any(ctx)
	})
	return k
}

// sharedKeys are the keys in a database under one configuration.
type sharedKeys struct {
	*keyDatabase
	// own resolves the key of a session, which caches the principal for most of
	// identity.cache.
	own *keystore.Resolver
	// clients resolves keys for a front, which asks with each request. It caches a principal
	// for all of identity.cache.
	clients *keystore.Resolver
	// endpoint reports that a policy endpoint may know keys that are not in the database.
	endpoint bool
}

func newSharedKeys(db *keyDatabase, s *config.Settings) *sharedKeys {
	return &sharedKeys{
		keyDatabase: db, own: db.answers.For(keyCache(s)), clients: db.answers.For(s.Identity.Cache),
		endpoint: s.Policy.URL != "" && s.Origin("identity.keys_file").Default(),
	}
}

// Resolve implements [identity.Identifier]. For a key that only a policy endpoint may know, it
// returns neither a principal nor an error.
func (k *sharedKeys) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	p, err := k.own.Resolve(ctx, credential)
	if k.endpoint && errors.Is(err, identity.ErrUnknownKey) {
		return nil, nil
	}
	return p, err
}

// required reports whether clients must send a key, because the database has keys. They must also
// send one if the database does not answer, or anybody could use attache during that time.
func (k *sharedKeys) required(log *slog.Logger) bool {
	has, err := k.hasKeys()
	if err != nil {
		k.warned.Do(func() {
			log.Warn("it is not known whether the shared database has keys, so clients need a credential; if it has none, start attache again when it answers", "err", err)
		})
	}
	return has || err != nil
}

// Authenticates reports whether clients must send a credential: there is an issuer, a key file that
// is configured or exists, or a database with keys.
func (s *Shared) Authenticates() bool {
	who := s.authenticator
	_, isFile := who.keys.(*identity.Resolver)
	shared, isShared := who.keys.(*sharedKeys)
	switch {
	case who.tokens != nil:
		return true
	case !isFile && !isShared:
		return false
	case !s.settings.Origin("identity.keys_file").Default():
		return true
	}
	if _, err := os.Stat(s.settings.Identity.KeysFile); err == nil {
		return true
	}
	return isShared && shared.required(s.Log)
}

// Authenticate returns the owner of a client's credential under the current settings.
func (p *process) Authenticate(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	who := p.who.Load()
	keys := who.keys
	if shared, ok := keys.(*sharedKeys); ok {
		keys = shared.clients
	}
	return identity.Chain(keys, who.tokens).Resolve(ctx, credential)
}
