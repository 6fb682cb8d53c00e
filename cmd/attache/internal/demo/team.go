package demo

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// A team is a registry of sessions, and another agent that is registered in it.
type team struct {
	dir    string
	db     *store.Store
	shared *teams.Shared
	peer   *store.Session
}

// newTeam creates a registry in a temporary directory.
func newTeam(ctx context.Context, log *slog.Logger) (*team, error) {
	dir, err := os.MkdirTemp("", "attache-demo-")
	if err != nil {
		return nil, err
	}
	t := &team{dir: dir}
	start := time.Now()
	now := func() time.Time { return start } // so that the output is always the same
	t.db, err = store.Open(ctx, store.Options{Path: filepath.Join(dir, "teams.db"), Now: now})
	if err == nil {
		t.peer, err = t.db.Attach(ctx, store.Claim{Tenant: "acme", Key: "peer", Workspace: "shop", Trust: sessionstate.Direct, Title: "Review cart"}, store.Attachment{Instance: "peer"})
	}
	t.shared = teams.Compile(teams.Options{
		Open:          func() (*store.Store, error) { return t.db, err },
		Workspace:     func(*sessionstate.Context) string { return "shop" },
		ClientProcess: func() string { return "" },
		Wait:          time.Minute,
		Now:           now, Log: log,
	})
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *team) layer(catalog *middleware.Catalog) middleware.Layer {
	return t.shared.Connect(teams.ConnOptions{Catalog: catalog}).Layer()
}

// write waits until the session is registered, and sends it a message of the other agent. It returns when the
// layer has seen the message.
func (t *team) write(ctx context.Context, text string) error {
	for sent := false; ; time.Sleep(time.Millisecond) {
		if mail, err := t.shared.Look(ctx); mail || err != nil {
			return err
		}
		all, _, err := t.db.List(ctx, t.peer.Ref, store.Filter{})
		if err != nil {
			return err
		}
		for _, s := range all {
			if s.ID == t.peer.ID || sent {
				continue
			}
			if _, err := t.db.Send(ctx, t.peer.Ref, store.Draft{To: s.ID, Body: text}); err != nil {
				return err
			}
			sent = true
		}
	}
}

func (t *team) close() {
	t.shared.Close()
	if t.db != nil {
		_ = t.db.Close()
	}
	_ = os.RemoveAll(t.dir)
}

// withoutHandles returns a frame without the random parts of handles.
func withoutHandles(frame []byte) []byte {
	return regexp.MustCompile(`\b(ses|m)_[0-9a-z]{12}`).ReplaceAll(frame, []byte("${1}_…"))
}
