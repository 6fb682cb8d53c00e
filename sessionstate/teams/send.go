package teams

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The limits on messages.
const (
	maxQueued    = 50 // unread messages of a target
	perMinute    = 10 // from one sender to one target
	perBurst     = 3  // from one sender to one target, within burstTime
	burstTime    = 10 * time.Second
	sameTextTime = 10 * time.Minute
)

// A Draft is a message to be sent. The caller has checked the body (see [CheckMessage]).
type Draft struct {
	To      string // the handle of the target
	Body    string
	SendKey string // "" for none: see [Store.Send]
	// AnswerParent allows a sandboxed session to write to its parent.
	AnswerParent bool
}

// A SentMessage is a message that Send has put into a mailbox.
type SentMessage struct {
	ID      string
	Target  *Session
	Expires time.Time
	Length  int // in characters
}

// Send puts a message from the session from into the mailbox of its target. If from has already
// sent a message with the same SendKey to the target, Send returns that one. If from must not
// write to the target (see mayReceive), the error is [ErrTarget] for every reason, after the same
// statements, so that neither the text nor the time reveals the reason.
func (s *Store) Send(ctx context.Context, from Ref, d Draft) (sent *SentMessage, err error) {
	err = s.in(ctx, from.Tenant, func(t *tx) error {
		to := Ref{from.Tenant, d.To}
		if sent, err = t.sentBefore(from, d); err != nil || sent != nil {
			return err
		}
		// This locks the mailbox, so the counts below cannot change.
		n := t.exec(`UPDATE sessions SET queued = queued + 1 WHERE tenant = ?1 AND id = ?2 AND queued < ?5 AND `+mayReceive,
			to.Tenant, to.ID, from.ID, d.AnswerParent, maxQueued)
		if err := t.flood(from, to, d.Body); err != nil {
			return err
		}
		var may bool
		t.row(`SELECT EXISTS (SELECT 1 FROM sessions WHERE tenant = ?1 AND id = ?2 AND `+mayReceive+`)`,
			to.Tenant, to.ID, from.ID, d.AnswerParent).read(&may)
		switch {
		case !may:
			return ErrTarget
		case n == 0:
			return ErrFull
		}
		id := t.put(to, letter{from: from.ID, kind: Text, body: d.Body, key: d.SendKey})
		sent, err = t.sent(to, id)
		return err
	})
	if first := firstResult(ctx, s, from.Tenant, d.SendKey, err, func(t *tx) (*SentMessage, error) { return t.sentBefore(from, d) }); first != nil {
		return first, nil
	}
	return sent, err
}

// mayReceive is the SQL condition that the session ?3 may write to a row of sessions. ?4 allows a
// sandboxed session to answer its parent.
const mayReceive = `ended IS NULL AND id <> ?3 AND EXISTS (SELECT 1 FROM sessions me
	WHERE me.tenant = ?1 AND me.id = ?3 AND me.ended IS NULL AND me.workspace = sessions.workspace
		AND (me.trust = 'direct' OR sessions.trust = 'sandboxed' OR ?4 AND sessions.id = me.parent))`

// sentBefore returns the message that from has sent with the key of d, nil if there is none.
func (t *tx) sentBefore(from Ref, d Draft) (*SentMessage, error) {
	if d.SendKey == "" {
		return nil, nil
	}
	var id string
	if !t.row(`SELECT id FROM messages WHERE tenant = ?1 AND from_session = ?2 AND to_session = ?3 AND send_key = ?4`,
		from.Tenant, from.ID, d.To, d.SendKey).find(&id) {
		return nil, nil
	}
	return t.sent(Ref{from.Tenant, d.To}, id)
}

func (t *tx) sent(to Ref, id string) (*SentMessage, error) {
	var expires int64
	var length int
	t.row(`SELECT expires, length(body) FROM messages WHERE tenant = ?1 AND id = ?2`, to.Tenant, id).read(&expires, &length)
	target, err := t.session(to)
	return &SentMessage{ID: id, Target: target, Expires: time.Unix(0, expires), Length: length}, err
}

// flood returns a refusal if one sender sends to one target too often. It ignores messages from
// too far in the future, which were sent before the clock was set back.
func (t *tx) flood(from, to Ref, body string) error {
	var same, minute, burst int
	var minuteFirst, burstFirst sql.NullInt64
	t.row(`SELECT count(CASE WHEN digest = ?4 THEN 1 END),
			count(CASE WHEN abs(created - ?5) < ?7 THEN 1 END), min(CASE WHEN abs(created - ?5) < ?7 THEN created END),
			count(CASE WHEN abs(created - ?5) < ?8 THEN 1 END), min(CASE WHEN abs(created - ?5) < ?8 THEN created END)
		FROM messages WHERE tenant = ?1 AND from_session = ?2 AND to_session = ?3 AND kind = 'message' AND created > ?5 - ?6 AND created < ?5 + ?6`,
		from.Tenant, from.ID, to.ID, digest(body), t.now, int64(sameTextTime), int64(time.Minute), int64(burstTime)).
		read(&same, &minute, &minuteFirst, &burst, &burstFirst)
	switch {
	case same > 0:
		return ErrSameText
	case minute >= perMinute:
		return tooFast(fmt.Sprintf("%d messages per minute to one session", perMinute), time.Duration(minuteFirst.Int64-t.now)+time.Minute)
	case burst >= perBurst:
		return tooFast(fmt.Sprintf("%d messages per %d seconds to one session", perBurst, burstTime/time.Second), time.Duration(burstFirst.Int64-t.now)+burstTime)
	}
	return nil
}

// A letter is a message that is not yet in a mailbox.
type letter struct {
	from string // the handle of the sender
	kind Kind
	body string
	key  string // "" for none
}

// deliver puts a message from attache into a mailbox. No limit applies, so that every result
// arrives. deliver replaces bytes that PostgreSQL does not accept. It does nothing if the session
// does not exist or was ended.
func (t *tx) deliver(to Ref, l letter) {
	if t.exec(`UPDATE sessions SET queued = queued + 1 WHERE tenant = ?1 AND id = ?2 AND ended IS NULL`, to.Tenant, to.ID) == 0 {
		return
	}
	l.body = strings.ToValidUTF8(strings.ReplaceAll(l.body, "\x00", "\ufffd"), "\ufffd")
	t.put(to, l)
}

// put inserts a message. The caller has already increased the session's number of queued messages.
func (t *tx) put(to Ref, l letter) (id string) {
	var seq int64
	t.row(`UPDATE sessions SET next_seq = next_seq + 1 WHERE tenant = ?1 AND id = ?2 RETURNING next_seq`, to.Tenant, to.ID).read(&seq)
	id = newHandle("m_")
	t.exec(`INSERT INTO messages (tenant, to_session, seq, id, from_session, kind, body, digest, send_key, state, created, expires)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, nullif(?9, ''), 'queued', ?10, ?11)`,
		to.Tenant, to.ID, seq, id, l.from, l.kind, l.body, digest(l.body), l.key, t.now, t.now+int64(Expiry))
	t.wrote++
	return id
}

// firstResult returns the result of the first of two calls that were made with the same key at the same
// time, nil if there is none. The second one waited for a row that the first had locked, and err is its
// refusal; look finds the result by the key.
func firstResult[T any](ctx context.Context, s *Store, tenant, key string, err error, look func(*tx) (*T, error)) (result *T) {
	if r, refused := errors.AsType[Refusal](err); key == "" || !refused || r == ErrUnavailable {
		return nil
	}
	err = s.in(ctx, tenant, func(t *tx) (err error) {
		result, err = look(t)
		return err
	})
	if err != nil {
		return nil
	}
	return result
}
