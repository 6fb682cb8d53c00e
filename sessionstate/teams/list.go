package teams

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// A Filter selects the sessions to list.
type Filter struct {
	Active     bool   // only active sessions
	Agent      string // only sessions of this template; "" for all
	ChildrenOf string // only children of this session; "" for all
	Limit      int    // at most MaxListed; 0 stands for MaxListed
	Cursor     string // from an earlier list; "" for the beginning
}

// MaxListed is the maximum number of sessions in a list.
const MaxListed = 100

// ErrCursor is returned for an invalid cursor.
const ErrCursor = Refusal("cursor is not one that list_workspace_sessions returned")

// List returns the sessions in the workspace of me that me may see, the newest first, and a
// cursor for the rest, "" if there is none. A sandboxed session sees no direct session except
// its own parent, without the title. If another direct session is the parent of a listed session, that parent is left out.
func (s *Store) List(ctx context.Context, me Ref, f Filter) (sessions []*Session, cursor string, err error) {
	if f.Limit <= 0 || f.Limit > MaxListed {
		f.Limit = MaxListed
	}
	before, beforeID, err := readCursor(f.Cursor)
	if err != nil {
		return nil, "", err
	}
	sessions, err = view(ctx, s, database.Scope{Tenant: me.Tenant}, func(t *tx) (found []*Session, _ error) {
		found, cursor = t.list(me, f, before, beforeID)
		return found, nil
	})
	return sessions, cursor, err
}

// list returns the sessions that come after the one created at before with the id beforeID.
func (t *tx) list(me Ref, f Filter, before int64, beforeID string) (sessions []*Session, cursor string) {
	read := func(row database.Rows) (*Session, error) {
		var veiled, orphaned bool
		found, err := scan(row, t.now, &veiled, &orphaned)
		if err == nil && veiled {
			found.Title = ""
		}
		if err == nil && (veiled || orphaned) {
			found.Parent, found.CreatedBy = "", ""
		}
		return found, err
	}
	var workspace, trust, parent string
	if !t.row(`SELECT workspace, trust, parent FROM sessions WHERE tenant = ?1 AND id = ?2`, me.Tenant, me.ID).find(&workspace, &trust, &parent) {
		return nil, ""
	}
	sessions = rows(t, read, listed, t.now, me.Tenant, workspace, trust, parent, f.Active, f.Agent, f.ChildrenOf, before, beforeID, f.Limit+1)
	if len(sessions) > f.Limit {
		last := sessions[f.Limit-1]
		sessions, cursor = sessions[:f.Limit], writeCursor(last.Created.UnixNano(), last.ID)
	}
	return sessions, cursor
}

// listed is the statement of a list. The workspace, trust and parent of the caller are arguments, ?3 to ?5. With a
// join PostgreSQL would not know the workspace, and would read and sort all of its sessions. So it reads an index
// until it has enough.
var listed = `SELECT ` + columns + `, ?4 = 'sandboxed' AND s.trust = 'direct',
		?4 = 'sandboxed' AND s.parent <> ?5 AND EXISTS (SELECT 1 FROM sessions p WHERE p.tenant = s.tenant AND p.id = s.parent AND p.trust = 'direct')
	FROM sessions s WHERE s.tenant = ?2 AND s.workspace = ?3 AND s.ended IS NULL
		AND (?4 = 'direct' OR s.trust = 'sandboxed' OR s.id = ?5)
		AND (NOT ?6 OR s.run_state IN ('starting', 'running') AND s.run_until > ?1
			OR EXISTS (SELECT 1 FROM attachments a WHERE a.tenant = s.tenant AND a.session = s.id AND ` + fresh("a.until") + `))
		AND (?7 = '' OR s.agent = ?7) AND (?8 = '' OR s.parent = ?8)
		AND s.created <= ?9 AND (s.created < ?9 OR s.id < ?10)
	ORDER BY s.created DESC, s.id DESC LIMIT ?11`

func writeCursor(created int64, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", created, id))
}

func readCursor(cursor string) (created int64, id string, err error) {
	if cursor == "" {
		return 1<<63 - 1, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s", &created, &id)
	}
	if err != nil || !IsHandle(id) {
		return 0, "", ErrCursor
	}
	return created, id, nil
}

// Agents returns the sessions that attache started, of all tenants and workspaces: that with the handle
// id, or the last thousand if id is "", the newest first.
func (s *Store) Agents(ctx context.Context, id string) ([]*Session, error) {
	return view(ctx, s, database.Scope{AllTenants: true}, func(t *tx) ([]*Session, error) {
		return t.sessions(`SELECT `+columns+` FROM sessions s WHERE s.run > 0 AND (?2 = '' OR s.id = ?2)
			ORDER BY s.created DESC, s.id DESC LIMIT 1000`, t.now, id), nil
	})
}

// Resumable returns the sessions of a workspace that have queued messages and whose runs are over.
func (s *Store) Resumable(ctx context.Context, tenant, workspace string) ([]*Session, error) {
	sessions, err := view(ctx, s, database.Scope{Tenant: tenant, Relaxed: true}, func(t *tx) ([]*Session, error) {
		return t.sessions(`SELECT `+columns+` FROM sessions s WHERE s.tenant = ?2 AND s.workspace = ?3 AND s.ended IS NULL
			AND s.queued > 0 AND s.run_state IN ('finished', 'failed') ORDER BY s.created`, t.now, tenant, workspace), nil
	})
	return slices.DeleteFunc(sessions, func(s *Session) bool { return s.Attached }), err
}
