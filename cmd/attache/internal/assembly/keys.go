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

// A keyDatabase has keys that several machines share. It outlives a configuration.
type keyDatabase struct {
	answers *keystore.Resolver
	hasKeys func() (bool, error) // when it was first asked
	warned  sync.Once            // that this is not known
	close   func()
}

// askTime bounds the question whether there are keys.
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
	// own answers a session, which relies on the principal for the rest of identity.cache.
	own *keystore.Resolver
	// clients answers a front, which asks with each request, and so relies on an answer for
	// all of identity.cache.
	clients *keystore.Resolver
	// endpoint is set if a policy endpoint may know keys that are not in the database.
	endpoint bool
}

func newSharedKeys(db *keyDatabase, s *config.Settings) *sharedKeys {
	return &sharedKeys{
		keyDatabase: db, own: db.answers.For(readAgain(s)), clients: db.answers.For(s.Identity.Cache),
		endpoint: s.Policy.URL != "" && s.Origin("identity.keys_file").Default(),
	}
}

// Resolve implements [identity.Identifier]. A key that only a policy endpoint can know is no
// failure, and nobody's here.
func (k *sharedKeys) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	p, err := k.own.Resolve(ctx, credential)
	if k.endpoint && errors.Is(err, identity.ErrUnknownKey) {
		return nil, nil
	}
	return p, err
}

// exist reports whether clients have to show one of the keys. If the database does not say,
// they have to: else anybody could enter while it is away.
func (k *sharedKeys) exist(log *slog.Logger) bool {
	has, err := k.hasKeys()
	if err != nil {
		k.warned.Do(func() {
			log.Warn("it is not known whether the shared database has keys, so clients need a credential; if it has none, start attache again when it answers", "err", err)
		})
	}
	return has || err != nil
}

// Authenticates reports whether the settings can say whose a credential is: there is an
// issuer, a file of keys that was named or is there, or a database with keys.
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
	return isShared && shared.exist(s.Log)
}

// Authenticate returns whose a client's credential is, under the settings in force.
func (p *process) Authenticate(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	who := p.who.Load()
	keys := who.keys
	if shared, ok := keys.(*sharedKeys); ok {
		keys = shared.clients
	}
	return identity.Chain(keys, who.tokens).Resolve(ctx, credential)
}
