package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/internal/fronts"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/wire"
)

// joinFronts registers this process as one of the user's fronts, which share sessions. It does
// nothing if there is no state directory, or if the port changes with each start, because no client
// could come back. If the database cannot be used, sessions exist only in this process.
func (s *service) joinFronts(ctx context.Context) {
	_, port, _ := net.SplitHostPort(s.settings.Listen)
	dir := s.Process.StatePath("fronts")
	if dir == "" && s.database == nil || port == "0" && len(s.Listeners) == 0 {
		return
	}
	var all []string
	for _, server := range s.Servers {
		all = append(all, server.identity())
	}
	f, err := fronts.Open(ctx, fronts.Options{
		Server: s.database, Path: filepath.Join(dir, "sessions.db"), Locks: dir,
		Address: s.address(), Service: digest(all...), Idle: s.settings.Idle,
	})
	if err != nil {
		s.Log.Warn("sessions will not go on after a restart, nor in other fronts", "err", err)
		return
	}
	s.fronts = f
	s.renewLease(ctx)
}

// identity returns an id of the server that is the same in other fronts. A server with another path, name,
// URL or command is another one, so it does not continue the sessions of this one.
func (o *Server) identity() string {
	return digest(append([]string{o.Path, o.Settings.Server.Name, o.Settings.Server.Remote.URL}, o.Command...)...)
}

// digest returns the first half of the SHA-256 of texts. The separator makes "ab", "c" differ from "a", "bc".
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// address returns the address at which a load balancer probably reaches this front.
func (s *service) address() string {
	at := s.settings.Listen
	if len(s.Listeners) > 0 {
		a := s.Listeners[0].Addr()
		if at = a.String(); a.Network() == "unix" {
			return "unix:" + at
		}
	}
	host, port, _ := net.SplitHostPort(at)
	if host == "" || net.ParseIP(host).IsUnspecified() { // false for a name
		// 0.0.0.0 is not an address at which others reach this machine.
		host, _ = os.Hostname()
	}
	return net.JoinHostPort(host, port)
}

// sessionStore returns the store for the sessions of a server. It returns nil if they are not
// stored, for example because initialize may contain an API key or a token.
func (s *service) sessionStore(server *Server) sessions.Store {
	if id := &server.Settings.Identity; s.fronts == nil || id.MetaAPIKey || id.MetaToken {
		return nil
	}
	return guardedStore{s.fronts.Sessions(server.identity())}
}

// A guardedStore stores no session whose client has sent a credential in a message that is stored, although none
// is accepted there.
type guardedStore struct{ sessions.Store }

// Save implements sessions.Store.
func (g guardedStore) Save(ctx context.Context, k sessions.Key, v sessions.Session) error {
	texts := []byte(strings.Join(append([]string{v.Initialize, v.Level}, v.Subscriptions...), "\n"))
	if slices.ContainsFunc(capture.CredentialKeys(), func(key string) bool { return wire.Mentions(texts, key) }) {
		return g.Leave(ctx, k, true) // an earlier state may be stored
	}
	return g.Store.Save(ctx, k, v)
}

// keepLease renews the lease of this front until ctx is done. After a lapse it compares all sessions with
// the store, until that succeeds once.
func (s *service) keepLease(ctx context.Context) {
	tick := time.Tick(fronts.RenewEvery)
	unsure := false
	for {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		// While the lease was over, any session of this front may have been taken.
		if s.renewLease(ctx) {
			s.Log.Warn("the lease of this front was over: sessions that other fronts have taken end here")
			unsure = true
		}
		// Without the store there is nothing to compare with.
		if !s.leaseFails {
			// Sessions that could not be stored are compared at each tick, all of them only until
			// that has succeeded.
			unsure = s.recheck(ctx, unsure) != nil && unsure
		}
	}
}

// recheck compares the sessions of this front with those in the store: all of them, or those that could
// not be stored. It returns before the next renewal.
func (s *service) recheck(ctx context.Context, all bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fronts.RenewEvery)
	defer cancel()
	for _, e := range s.endpoints {
		err = errors.Join(err, e.front.Recheck(ctx, all))
	}
	return err
}

// renewLease renews the lease of this front, and reports whether it had expired. It logs only the
// first of consecutive failures.
func (s *service) renewLease(ctx context.Context) (lapsed bool) {
	lapsed, err := s.fronts.Renew(ctx)
	if err != nil && !s.leaseFails && ctx.Err() == nil {
		s.Log.Warn("the lease of this front could not be renewed: other fronts may take its sessions", "err", err)
	}
	s.leaseFails = err != nil
	return lapsed && err == nil
}
