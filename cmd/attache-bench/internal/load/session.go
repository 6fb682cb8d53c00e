package load

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	random "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate/teams"
)

type session struct {
	key, workspace string
	team           bool
	attaches       []*attache
}

// live plays a session that begins at age until its end.
func (w *world) live(ctx context.Context, attaches []*attache, age time.Duration) {
	s := &session{key: rand.Text(), workspace: rand.Text(), attaches: attaches}
	if attaches[0].sessions == nil {
		n := int(w.stdio.Add(1))
		s.team = n%w.stdioPerMember == 0
		s.workspace = fmt.Sprintf("team %d", n/w.stdioPerMember/teamSize)
	}
	w.sessions.Add(1)
	for _, a := range attaches {
		for a.join(ctx, s.key, s.workspace) != nil {
			if !w.until(ctx, w.clock.now()+retryAfter) {
				return
			}
		}
	}
	var me teams.Ref
	if s.team {
		me = attaches[0].member.Load().ref
		w.ledger.enter(s.workspace, me)
		defer w.ledger.leave(s.workspace, me)
	}
	born := w.clock.now() - age
	for _, e := range s.events(age) {
		if !w.until(ctx, born+e.at) {
			break
		}
		if e.message {
			w.send(ctx, s, me)
			continue
		}
		attaches[random.IntN(len(attaches))].call(ctx)
	}
	w.until(ctx, born+sessionTime)
	for _, a := range attaches {
		a.leave(context.WithoutCancel(ctx), s.key)
	}
}

// An event is a call or a message in the life of a session.
type event struct {
	at      time.Duration
	message bool
}

func (s *session) events(age time.Duration) (all []event) {
	add := func(n int, message bool) {
		for i := range n {
			at := (time.Duration(i)*sessionTime + random.N(sessionTime)) / time.Duration(n)
			if at > age {
				all = append(all, event{at, message})
			}
		}
	}
	add(callsPerSession, false)
	if s.team {
		add(messagesPerSession, true)
	}
	slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}

// send sends a message to another session of the team, if there is one.
func (w *world) send(ctx context.Context, s *session, me teams.Ref) {
	to, ok := w.ledger.peer(s.workspace, me)
	if !ok {
		return
	}
	body := rand.Text() + strings.Repeat(" a message of two thousand characters", 54)
	var sent *teams.SentMessage
	refused := false
	err := w.time("message sent", func() (err error) {
		sent, err = s.attaches[0].teams.Send(ctx, me, teams.Draft{To: to.ID, Body: body})
		if refused = isRefusal(err); refused {
			return nil
		}
		return err
	})
	switch {
	case refused:
		w.ledger.refused.Add(1)
	case err != nil:
		w.ledger.unsure.Add(1)
	default:
		w.ledger.send(sent.ID)
	}
}
