package teams_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// PostgreSQL is killed in the middle of 1,000 messages: each one that was acknowledged is in its
// mailbox, and none is there twice, although its sender tries again what failed.
func TestServerKilledWhileSending(t *testing.T) {
	const targets, senders, killAfter = 20, 50, 300
	cluster := pgtest.New(t, os.Getenv)
	url := migrated(t, cluster.Database())
	s := openURL(t, url, nil)
	var to []teams.Ref
	for i := range targets {
		to = append(to, person(t, s, fmt.Sprint("target ", i)))
	}
	var from []teams.Ref
	for i := range senders {
		from = append(from, person(t, s, fmt.Sprint("sender ", i)))
	}
	var mu sync.Mutex
	acknowledged := map[string]teams.Ref{} // message to target
	failed := 0
	var count atomic.Int64
	due := make(chan struct{})
	var wait sync.WaitGroup
	for i, sender := range from {
		wait.Go(func() {
			for _, target := range to {
				draft := teams.Draft{To: target.ID, Body: "hello", SendKey: fmt.Sprint("once ", i)}
				sent, err := s.Send(t.Context(), sender, draft)
				for ; err != nil; sent, err = s.Send(t.Context(), sender, draft) {
					if !errors.Is(err, teams.ErrUnavailable) {
						t.Error(err)
						return
					}
					mu.Lock()
					failed++
					mu.Unlock()
					time.Sleep(5 * time.Millisecond)
				}
				mu.Lock()
				acknowledged[sent.ID] = target
				mu.Unlock()
				if count.Add(1) == killAfter {
					close(due)
				}
			}
		})
	}
	<-due
	cluster.Kill()
	cluster.Start()
	wait.Wait()
	if len(acknowledged) != targets*senders || failed == 0 {
		t.Errorf("%d messages were acknowledged, want %d; %d tries failed, want some", len(acknowledged), targets*senders, failed)
	}
	found := 0
	for _, target := range to {
		taking, err := s.Take(t.Context(), target, teams.TakeOption{Limit: teams.ReadLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range taking.Messages {
			if acknowledged[m.ID] != target {
				t.Errorf("message %s of session %s was not acknowledged, or is there twice", m.ID, target.ID)
			}
			delete(acknowledged, m.ID)
			found++
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d messages that were acknowledged are lost; %d are there", len(acknowledged), found)
	}
}

// While the server is away what needs it is refused with one text, and what has it not is as
// before; when it is back all goes on (section 13 of the design, last column).
func TestServerAway(t *testing.T) {
	cluster := pgtest.New(t, os.Getenv)
	s := openURL(t, migrated(t, cluster.Database()), nil)
	me, other := person(t, s, "me"), person(t, s, "other")
	cluster.Kill()
	for name, do := range map[string]func() error{
		"Create": func() error {
			_, _, err := s.Create(t.Context(), me, teams.Child{Title: "a", Agent: "a", Message: "m", Key: "k", Token: "t"}, teams.DefaultLimits())
			return err
		},
		"Send":    func() error { _, err := s.Send(t.Context(), me, teams.Draft{To: other.ID, Body: "hello"}); return err },
		"List":    func() error { _, _, err := s.List(t.Context(), me, teams.Filter{}); return err },
		"Session": func() error { _, err := s.Session(t.Context(), me); return err },
		"HasMail": func() error { _, err := s.HasMail(t.Context(), me); return err },
		"Renew":   func() error { return s.Renew(t.Context(), me, "x", time.Now()) },
		"Sweep":   func() error { return s.Sweep(t.Context(), time.Hour) },
	} {
		if err := do(); !errors.Is(err, teams.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", name, err, teams.ErrUnavailable)
		}
	}
	cluster.Start()
	for {
		_, err := s.Send(t.Context(), me, teams.Draft{To: other.ID, Body: "hello"})
		if err == nil {
			break
		}
		if !errors.Is(err, teams.ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	taking, err := s.Take(t.Context(), other, teams.TakeOption{Limit: teams.ReadLimit})
	if err != nil || len(taking.Messages) != 1 {
		t.Errorf("after it is back: %+v, %v", taking, err)
	}
}
