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
	store   *keystore.Store
	warned  sync.Once // warns that hasKeys failed
	close   func()

	// mu guards the fields below. It is held during the query, so that all who ask wait for one answer.
	mu     sync.Mutex
	failed time.Time // when hasKeys failed for the last time
	err    error     // its error then, at first that it was not asked; nil once there is an answer
	has    bool      // the answer
}

const (
	askTime  = 5 * time.Second // bounds the query whether there are keys
	askAgain = time.Second     // how long an error of it is returned again
)

// openKeys returns the keys in db. It asks nothing yet. When another process changes a key, a notice of the
// database makes this one ask again (Server.Listen); without notices it asks again after identity.cache.
func openKeys(db *database.Server) *keyDatabase {
	store := keystore.New(db.Open(keystore.Schema()))
	k := &keyDatabase{answers: keystore.NewResolver(store, identity.DefaultCache, nil), store: store, err: errors.New("the database was not asked")}
	k.close = db.OnNotice(func(payload string) {
		if payload == "" || payload == keystore.Notice {
			k.answers.Refresh()
		}
	})
	return k
}

// hasKeys reports whether the database has keys. It asks the database until the first answer and keeps that
// answer, because a process decides only once whether clients need a credential. It may block for askTime.
func (k *keyDatabase) hasKeys() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil && time.Since(k.failed) > askAgain {
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		k.has, k.err = k.store.Any(ctx)
		k.failed = time.Now()
	}
	return k.has, k.err
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

// newSharedKeys returns the keys in db, with the cache times of s. The Resolvers of all configurations share the
// answers of the database, so attache does not ask for each key again after a reload.
func newSharedKeys(db *keyDatabase, s *config.Settings) *sharedKeys {
	return &sharedKeys{
		keyDatabase: db, own: db.answers.For(keyCache(s)), clients: db.answers.For(s.Identity.Cache),
		endpoint: s.Policy.URL != "" && s.IsDefaultKeysFile(),
	}
}

// keyCache returns how long the content of a key file or session file is cached: a tenth of
// identity.cache. The principal is cached for the rest, so that together they take no longer than
// identity.cache. With 1m, a file is read again after 6 s, and a principal is looked up again after
// 54 s, so a revoked key stops working within a minute.
func keyCache(s *config.Settings) time.Duration { return s.Identity.Cache / 10 }

// Resolve implements [identity.Identifier]. For a key that only a policy endpoint may know, it
// returns neither a principal nor an error. It returns any other error, such as that of a database that does not
// answer, because the key may be revoked.
func (k *sharedKeys) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	p, err := k.own.Resolve(ctx, credential)
	if k.endpoint && errors.Is(err, identity.ErrUnknownKey) {
		return nil, nil
	}
	return p, err
}

// required reports whether clients must send a key, because the database has keys. They must also
// send one if the database does not answer, or anybody could use attache during that time; unsure is then true.
func (k *sharedKeys) required(log *slog.Logger) (required, unsure bool) {
	has, err := k.hasKeys()
	if err != nil {
		k.warned.Do(func() {
			log.Warn("it is not known whether the shared database has keys, so clients need a credential until it answers", "err", err)
		})
	}
	return has || err != nil, err != nil
}

// Authenticates reports whether clients must send a credential: there is an issuer, a key file that
// is configured or exists, or a database with keys.
func (s *Shared) Authenticates() bool {
	authenticates, _ := s.NeedsCredential()
	return authenticates
}

// NeedsCredential is like Authenticates, and reports whether it is unsure, because a database that may have keys
// has not answered yet. An operator who has named an issuer or a key file wants credentials, even while the file is
// missing. The default file counts only if it exists: without it nobody has made a key yet.
func (s *Shared) NeedsCredential() (needs, unsure bool) {
	who := s.authenticator
	_, isFile := who.keys.(*identity.Resolver)
	shared, isShared := who.keys.(*sharedKeys)
	switch {
	case who.tokens != nil:
		return true, false
	case !isFile && !isShared:
		return false, false
	case !s.settings.IsDefaultKeysFile(): // configured, so it counts even if it is missing
		return true, false
	}
	if _, err := os.Stat(s.settings.Identity.KeysFile); err == nil {
		return true, false
	}
	if !isShared {
		return false, false
	}
	return shared.required(s.Log)
}

// LacksKeys reports whether clients can only have keys of a database that has not answered yet. A key file beside the
// database is only for attache key import.
func (s *Shared) LacksKeys() bool {
	shared, isShared := s.authenticator.keys.(*sharedKeys)
	if !isShared || s.authenticator.tokens != nil {
		return false
	}
	_, err := shared.hasKeys()
	return err != nil
}

// Authenticate returns the owner of a client's credential under the current settings. A front calls it with each
// request, from many goroutines, so it asks the Resolver that caches for longer: see sharedKeys.
func (p *process) Authenticate(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	who := p.who.Load()
	keys := who.keys
	if shared, ok := keys.(*sharedKeys); ok {
		keys = shared.clients
	}
	return identity.Chain(keys, who.tokens).Resolve(ctx, credential)
}
