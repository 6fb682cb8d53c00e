package teams_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// openQuick opens the tables of a server with short retries.
func openQuick(t *testing.T, url string) *teams.Store {
	t.Helper()
	begun := time.Now()
	quick := func() time.Time { return begun.Add(1000 * time.Since(begun)) }
	return openServer(t, database.ServerOptions{URL: url, BreakerNow: quick}, nil)
}

// PostgreSQL is killed while 1,000 messages are sent. Each acknowledged message is in its mailbox,
// and none twice, although senders repeat failed calls.
func testServerKilledWhileSending(t *testing.T, cluster *pgtest.Cluster, url string) {
	const targets, senders, killAfter, waitAfter = 20, 50, 300, 600
	s := openQuick(t, url)
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
	var failed atomic.Int64
	var count atomic.Int64
	due, killed, noticed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	for i, sender := range from {
		wait.Go(func() {
			for _, target := range slices.Concat(to[i%targets:], to[:i%targets]) {
				draft := teams.Draft{To: target.ID, Body: "hello", SendKey: fmt.Sprint("once ", i)}
				sent, err := s.Send(t.Context(), sender, draft)
				for ; err != nil; sent, err = s.Send(t.Context(), sender, draft) {
					if !errors.Is(err, teams.ErrUnavailable) {
						t.Error(err)
						return
					}
					if failed.Add(1) == senders {
						close(noticed)
					}
					time.Sleep(5 * time.Millisecond)
				}
				mu.Lock()
				acknowledged[sent.ID] = target
				mu.Unlock()
				switch n := count.Add(1); {
				case n == killAfter:
					close(due)
				case n > waitAfter: // so that fast senders are not done before the kill
					<-killed
				}
			}
		})
	}
	<-due
	cluster.Kill()
	close(killed)
	<-noticed
	cluster.Start()
	wait.Wait()
	if len(acknowledged) != targets*senders {
		t.Errorf("%d messages were acknowledged, want %d", len(acknowledged), targets*senders)
	}
	found := 0
	for _, target := range to {
		taking, err := s.Take(t.Context(), target, teams.TakeOption{Limit: teams.ReadLimit})
		check(t, err)
		for _, m := range taking.Messages {
			if acknowledged[m.ID] != target {
				t.Errorf("message %s of session %s was not acknowledged, or is a duplicate", m.ID, target.ID)
			}
			delete(acknowledged, m.ID)
			found++
		}
	}
	if len(acknowledged) > 0 {
		t.Errorf("%d acknowledged messages are lost; %d exist", len(acknowledged), found)
	}
}

// While the server is unavailable, all calls that need it are refused with the same text. After
// that, they work again.
func testServerAway(t *testing.T, cluster *pgtest.Cluster, url string) {
	s := openQuick(t, url)
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
		"Mail":    func() error { _, err := s.Mail(t.Context(), me); return err },
		"Renew":   func() error { return s.Renew(t.Context(), me, teams.Renewal{Instance: "x"}) },
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
		t.Errorf("after the restart: %+v, %v", taking, err)
	}
}
