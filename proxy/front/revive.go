package front

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Store keeps what is needed to open the sessions of the revisions to 2025-11-25 again
// after a restart: many clients go on using the id of a session that is gone. Its methods are
// called from many goroutines and must not wait for long. A key does not tell the id.
type Store interface {
	// Save keeps a session, in place of an earlier one of that key.
	Save(key string, s SavedSession)
	// Load returns a session that was saved and not deleted.
	Load(key string) (SavedSession, bool)
	// Delete forgets a session, if there is one of that key.
	Delete(key string)
}

// A SavedSession is what a client and its server agreed on.
type SavedSession struct {
	Initialize string `json:"initialize,omitempty"` // the request of the client, without its line end
	Agreed     string `json:"agreed,omitempty"`     // a digest of the revision and the capabilities in the reply
}

// storeKey returns the key of a session. Nobody but its principal finds it.
func storeKey(id string, who Principal) string {
	sum := sha256.Sum256([]byte(who.ID + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// agreed returns the digest of what a reply to initialize agrees on.
func agreed(reply *wire.Message) string {
	h := sha256.New()
	h.Write(reply.Get("result", "protocolVersion").Raw)
	h.Write(reply.Get("result", "capabilities").Raw)
	return hex.EncodeToString(h.Sum(nil))
}

// lookup returns the session of that id, nil if there is none. One that was open when an
// earlier process ended is opened again.
func (f *Front) lookup(id string, who Principal, credential string) (*session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.findLocked(id, who); s != nil || f.o.Store == nil {
		return s, nil
	}
	saved, ok := f.o.Store.Load(storeKey(id, who))
	if !ok {
		return nil, nil
	}
	p, _, why := parse([]byte(saved.Initialize + "\n"))
	if why != "" {
		return nil, nil
	}
	s, err := f.openLocked(who, credential)
	if err != nil {
		return nil, err
	}
	s.id = id
	f.byID[id] = s
	t := newStream(false)
	calls := p.calls(t)
	s.in.hold()
	if added, err := s.add(calls); !added || err != nil {
		return nil, err // its relay has ended already
	}
	s.in.first(p.m.Line())
	go s.shakeHands(t, saved.Agreed)
	return s, nil
}

// shakeHands waits for the reply to the initialize of a session that was opened again, on t,
// and lets go what waits behind it. A server that agrees on something else than before would
// not do what the client expects of it, so that session is over.
func (s *session) shakeHands(t *stream, expected string) {
	<-t.wake
	items, _, _ := t.take(nil)
	var m wire.Message
	if len(items) > 0 {
		m.Reset(wire.Server, items[0].data)
	}
	if !m.LookEnvelope() || agreed(&m) != expected {
		s.end("the proxy was restarted, and the server does not agree on what it did before: begin a new session with initialize")
		return
	}
	s.f.log.Info("a session goes on that was open before attache was restarted", "session", s.label())
	s.in.first([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	s.in.release()
}

// forget deletes a session that is only saved, and reports whether there was one.
func (f *Front) forget(id string, who Principal) bool {
	if f.o.Store == nil {
		return false
	}
	key := storeKey(id, who)
	_, ok := f.o.Store.Load(key)
	f.o.Store.Delete(key)
	return ok
}
