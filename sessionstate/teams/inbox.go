package teams

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// Mail returns the sequence number of the last queued message that a tool result could carry, 0
// if there is none. In a file it takes some microseconds.
func (s *Store) Mail(ctx context.Context, ref Ref) (last int64, err error) {
	err = s.db.Row(ctx, database.Scope{Tenant: ref.Tenant, Relaxed: true}, `SELECT seq FROM messages
		WHERE tenant = ?1 AND to_session = ?2 AND state = 'queued' AND announced = 0 ORDER BY seq DESC LIMIT 1`, ref.Tenant, ref.ID).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return last, unavailable(err)
}

// Limits for the length of messages, in characters.
const (
	// CarryLimit is the total for a tool result that carries messages before its own content.
	CarryLimit = 16_000
	// ReadLimit is the total for an agent that reads its messages.
	ReadLimit = 60_000
	// cutAt is the length of the shown part of a message that is too long for a tool result.
	cutAt = 500
)

// A TakeOption says how to take messages.
type TakeOption struct {
	// Limit is the maximum total of characters. The first message may be longer.
	Limit int
	// Cut cuts messages longer than Limit, and does not return them again: an agent reads the
	// rest with read_messages.
	Cut bool
	// Peek returns messages without taking them.
	Peek bool
}

// A Taking has messages that were taken and are not yet settled.
type Taking struct {
	Messages  []Message
	Remaining int // number of queued messages after these

	ref   Ref
	owner string
}

// Take takes the queued messages of a session, in order. While another taker holds the inbox it
// takes none, and all of them remain. The caller must settle the messages within [InboxLease], or another caller may take
// them again. Do not settle messages taken with Peek.
func (s *Store) Take(ctx context.Context, ref Ref, o TakeOption) (taking *Taking, err error) {
	taking = &Taking{ref: ref, owner: newHandle("take_")}
	err = s.in(ctx, ref.Tenant, func(t *tx) error {
		taking.Messages, taking.Remaining = nil, 0
		if !o.Peek {
			// A lease that ends more than two leases later was taken before the clock was set back.
			n := t.exec(`UPDATE sessions SET inbox_until = ?1 + ?5, inbox_owner = ?4
				WHERE tenant = ?2 AND id = ?3 AND queued > 0 AND (inbox_until <= ?1 OR inbox_until > ?1 + 2 * ?5)`,
				t.now, ref.Tenant, ref.ID, taking.owner, int64(InboxLease))
			if n == 0 {
				t.row(`SELECT coalesce(max(queued), 0) FROM sessions WHERE tenant = ?1 AND id = ?2`, ref.Tenant, ref.ID).read(&taking.Remaining)
				return nil
			}
		}
		t.collect(taking, o)
		switch {
		case o.Peek:
		case len(taking.Messages) == 0: // all queued messages were announced
			t.exec(`UPDATE sessions SET inbox_until = 0 WHERE tenant = ?1 AND id = ?2`, ref.Tenant, ref.ID)
		default:
			t.countTry(taking)
		}
		return nil
	})
	return taking, err
}

// collect reads as many messages into taking as o allows, at most maxQueued: there may be many more results.
func (t *tx) collect(taking *Taking, o TakeOption) {
	queued := 0 // with those that were announced
	read := func(row database.Rows) (Message, error) { return scanMessage(row, &queued) }
	// A body that another program has put into the registry may be longer than those of attache.
	all := rows(t, read, `SELECT m.seq, m.id, m.from_session, m.kind, substr(m.body, 1, `+strconv.Itoa(ReadLimit)+`), m.tries, m.created,
			coalesce(f.title, ''), coalesce(f.agent, ''), coalesce(f.trust, ''), f.id = me.parent, f.parent = me.id, me.queued
		FROM messages m JOIN sessions me ON me.tenant = m.tenant AND me.id = m.to_session
		LEFT JOIN sessions f ON f.tenant = m.tenant AND f.id = m.from_session
		WHERE m.tenant = ?1 AND m.to_session = ?2 AND m.state = 'queued' AND (m.announced = 0 OR NOT ?3) ORDER BY m.seq LIMIT ?4`,
		taking.ref.Tenant, taking.ref.ID, o.Cut, maxQueued)
	room := o.Limit
	for i, m := range all {
		size := utf8.RuneCountInString(m.Body)
		if o.Cut && size > o.Limit {
			m.Body, m.Cut, size = Beginning(m.Body, cutAt), true, cutAt
		}
		if size > room && i > 0 {
			break
		}
		room -= size
		taking.Messages = append(taking.Messages, m)
	}
	if len(all) < maxQueued {
		queued = len(all)
	}
	taking.Remaining = max(queued-len(taking.Messages), 0)
}

// scanMessage reads a message, and how many are queued.
func scanMessage(row database.Rows, queued *int) (m Message, err error) {
	var tries int
	var created int64
	var parent, child sql.NullBool
	err = row.Scan(&m.seq, &m.ID, &m.From, &m.Kind, &m.Body, &tries, &created, &m.Title, &m.Agent, &m.Trust, &parent, &child, queued)
	// They stand where attache states who wrote the message, and other programs may write to the registry.
	m.ID, m.From, m.Agent, m.Trust = word(m.ID), word(m.From), word(m.Agent), word(m.Trust)
	m.Again, m.Sent, m.Relation = tries > 0, time.Unix(0, created), FromPeer
	switch {
	case parent.Bool:
		m.Relation = FromParent
	case child.Bool:
		m.Relation = FromChild
	}
	return m, err
}

// countTry increments the number of times that the messages of taking were taken.
func (t *tx) countTry(taking *Taking) {
	for _, m := range taking.Messages {
		t.exec(`UPDATE messages SET tries = tries + 1 WHERE tenant = ?1 AND to_session = ?2 AND seq = ?3`, taking.ref.Tenant, taking.ref.ID, m.seq)
	}
}

// An Outcome is the result of delivering messages that were taken.
type Outcome uint8

const (
	// NotSent means that nothing was written. The messages stay queued.
	NotSent Outcome = iota
	// Arrived means that the messages were written where the client shows them to the model.
	Arrived
	// Unsure means that they were written where the client may not show them. They are
	// delivered again, up to three times in total.
	Unsure
	// Unread means that an agent ended or closed its stdin before it had read them. They become
	// undeliverable: they would start the agent again, which would probably not read them either.
	Unread
)

// maxUnsure is how often a message is delivered where the client may not show it.
const maxUnsure = 3

// Settle records the outcome for messages, even if another taker holds the inbox by now. by is
// the process that delivered them.
func (s *Store) Settle(ctx context.Context, taking *Taking, o Outcome, by string) error {
	if len(taking.Messages) == 0 {
		return nil
	}
	return s.in(context.WithoutCancel(ctx), taking.ref.Tenant, func(t *tx) error {
		// Every transaction locks a session's row before its messages.
		t.exec(`UPDATE sessions SET inbox_until = CASE WHEN inbox_owner = ?3 THEN 0 ELSE inbox_until END WHERE tenant = ?1 AND id = ?2`,
			taking.ref.Tenant, taking.ref.ID, taking.owner)
		var settled int64
		for _, m := range taking.Messages {
			settled += t.settle(taking.ref, m, o, by)
		}
		t.exec(`UPDATE sessions SET queued = queued - ?3 WHERE tenant = ?1 AND id = ?2`, taking.ref.Tenant, taking.ref.ID, settled)
		return nil
	})
}

// settle settles one message and returns 1 if that removes it from the mailbox.
func (t *tx) settle(ref Ref, m Message, o Outcome, by string) int64 {
	const this = ` WHERE tenant = ?1 AND to_session = ?2 AND seq = ?3 AND state = 'queued'`
	switch {
	case o == NotSent:
		t.exec(`UPDATE messages SET tries = tries - 1`+this, ref.Tenant, ref.ID, m.seq)
		return 0
	case o == Unread:
		t.giveUp(waitingMessage{ref, m.seq, m.ID, m.From, m.Kind}, Undeliverable, "its agent ended before it had read all of its messages")
		return 0
	case m.Cut:
		t.exec(`UPDATE messages SET announced = ?4, tries = 0`+this, ref.Tenant, ref.ID, m.seq, t.now)
		return 0
	case o == Unsure:
		return t.exec(`UPDATE messages SET state = 'carried', carried = ?4, carried_by = ?5`+this+` AND tries >= ?6`,
			ref.Tenant, ref.ID, m.seq, t.now, by, maxUnsure)
	}
	return t.exec(`UPDATE messages SET state = 'carried', carried = ?4, carried_by = ?5`+this, ref.Tenant, ref.ID, m.seq, t.now, by)
}

// MarkSeen records that a client has sent a request after messages were delivered to it.
func (s *Store) MarkSeen(ctx context.Context, taking *Taking) error {
	return s.relaxed(ctx, taking.ref.Tenant, func(t *tx) error {
		for _, m := range taking.Messages {
			t.exec(`UPDATE messages SET state = 'seen', seen = ?4 WHERE tenant = ?1 AND to_session = ?2 AND seq = ?3 AND state = 'carried'`,
				taking.ref.Tenant, taking.ref.ID, m.seq, t.now)
		}
		return nil
	})
}

// MaxReceipts is how many receipts [Store.Receipts] returns at once: clients cut or refuse a tool
// result that is too long.
const MaxReceipts = 100

// Receipts returns the new states of the newest messages that a session has sent. It returns each
// change once, also to callers at the same time.
func (s *Store) Receipts(ctx context.Context, ref Ref) (all []Receipt, err error) {
	read := func(row database.Rows) (r Receipt, err error) {
		var at int64
		err = row.Scan(&r.ID, &r.To, &r.State, &at)
		r.At = time.Unix(0, at).UTC()
		return r, err
	}
	err = s.relaxed(ctx, ref.Tenant, func(t *tx) error {
		all = rows(t, read, `UPDATE messages SET reported = state
			WHERE state <> reported AND (tenant, id) IN (SELECT tenant, id FROM messages
				WHERE tenant = ?1 AND from_session = ?2 AND kind = 'message' AND state <> reported ORDER BY created DESC LIMIT ?3)
			RETURNING id, to_session, state, coalesce(seen, carried, expires)`, ref.Tenant, ref.ID, MaxReceipts)
		return nil
	})
	slices.SortFunc(all, func(a, b Receipt) int { return a.At.Compare(b.At) })
	return all, err
}

// ClaimWake returns the number of queued messages, and how many of them are from the parent, if
// the caller must wake the session now. Otherwise it returns 0. A session must be woken if
// messages have waited for longer than after, none of its processes has had a call for that
// time, and nobody has woken it within every, or within half the time that the newest message has
// waited: each time may cost a turn of the model, which need not read the messages.
func (s *Store) ClaimWake(ctx context.Context, ref Ref, after, every time.Duration) (count int, fromParent int, err error) {
	err = s.relaxed(ctx, ref.Tenant, func(t *tx) error {
		count, fromParent = 0, 0
		n := t.exec(`UPDATE sessions SET woken = ?3 WHERE tenant = ?1 AND id = ?2 AND queued > 0
			AND (woken <= ?3 - ?4 AND 2 * (?3 - woken) >= ?3 - (SELECT max(created) FROM messages WHERE tenant = ?1 AND to_session = ?2 AND state = 'queued') OR woken > ?3 + ?4)
			AND EXISTS (SELECT 1 FROM messages WHERE tenant = ?1 AND to_session = ?2 AND state = 'queued' AND created <= ?3 - ?5)
			AND NOT EXISTS (SELECT 1 FROM attachments WHERE tenant = ?1 AND session = ?2 AND called > ?3 - ?5 AND called <= ?3 + ?5)`,
			ref.Tenant, ref.ID, t.now, int64(every), int64(after))
		if n == 0 {
			return nil
		}
		t.row(`SELECT count(*), count(CASE WHEN m.from_session = s.parent THEN 1 END) FROM messages m JOIN sessions s ON s.tenant = m.tenant AND s.id = m.to_session
			WHERE m.tenant = ?1 AND m.to_session = ?2 AND m.state = 'queued'`, ref.Tenant, ref.ID).read(&count, &fromParent)
		return nil
	})
	return count, fromParent, err
}
