package sessions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// In an elsewhereStore, other fronts own the sessions, except those with the id "own". Take blocks for the session
// "slow" until the test closes release, and fails for the session "unknown".
type elsewhereStore struct {
	Store
	release chan struct{}
}

var errUnavailable = errors.New("the store is unavailable")

func (s elsewhereStore) Take(_ context.Context, k Key) (Session, error) {
	switch k.ID {
	case "slow":
		<-s.release
	case "unknown":
		return Session{}, errUnavailable
	case "own":
		return Session{}, nil
	}
	return Session{}, ErrElsewhere
}

// A slow answer of the Store for one session does not delay the others. A session is lost once.
func TestRecheck(t *testing.T) {
	store := elsewhereStore{release: make(chan struct{})}
	k := NewKeeper(store, slog.New(slog.DiscardHandler))
	var all []*Entry
	for _, id := range append(slices.Repeat([]string{"own"}, maxRechecks), "slow", "unknown", "last") {
		s := k.New(Key{ID: id})
		s.Restore(Session{})
		all = append(all, s)
	}
	lost := make(chan string, len(all))
	report := func(s *Entry) {
		if lost <- s.Key.ID; s.Key.ID == "last" {
			close(store.release)
		}
	}
	err := Recheck(t.Context(), all, report)
	if first, second := <-lost, <-lost; first != "last" || second != "slow" {
		t.Errorf("lost %s, then %s", first, second)
	}
	if again := Recheck(t.Context(), all, report); !errors.Is(err, errUnavailable) || !errors.Is(again, errUnavailable) || len(lost) > 0 {
		t.Errorf("%v, then %v and %d more", err, again, len(lost))
	}
}

// A countingStore counts the calls of Take.
type countingStore struct {
	Store
	takes int
}

func (s *countingStore) Take(context.Context, Key) (Session, error) {
	s.takes++
	return Session{}, nil
}

func (s *countingStore) Leave(context.Context, Key, bool) error { return nil }

// A session that is left during Recheck is not taken again. Otherwise no front could own it until
// this one ends.
func TestRecheckLeftSession(t *testing.T) {
	store := &countingStore{}
	s := NewKeeper(store, slog.New(slog.DiscardHandler)).New(Key{ID: "left"})
	s.Restore(Session{})
	s.Part()
	s.Leave(false)
	err := Recheck(t.Context(), []*Entry{s}, func(*Entry) { t.Error("the session was reported as lost") })
	if err != nil || store.takes > 0 {
		t.Errorf("taken %d times, %v", store.takes, err)
	}
}

// A savingStore stores the last level of a session, unless it is down.
type savingStore struct {
	Store
	down  bool
	level string
	left  string // the level when the session was left
	asked int
}

func (s *savingStore) Save(_ context.Context, _ Key, v Session) error {
	s.asked++
	if s.down {
		return errUnavailable
	}
	s.level = v.Level
	return nil
}

func (s *savingStore) Leave(context.Context, Key, bool) error {
	s.asked++
	if s.down {
		return errUnavailable
	}
	s.left = s.level
	return nil
}

// A session that could not be stored while the Store was down is stored before the front leaves it.
func TestLeaveUnsaved(t *testing.T) {
	store := &savingStore{down: true}
	s := NewKeeper(store, slog.New(slog.DiscardHandler)).New(Key{ID: "changed"})
	s.Restore(Session{Initialize: "{}", Level: `{"level":"info"}`})
	s.Save()
	store.down = false
	s.Part()
	s.Leave(false)
	if store.left != `{"level":"info"}` {
		t.Errorf("left with the level %q", store.left)
	}
}

// A front that ends asks a Store that is down once for each session: with twice, it would end twice as late.
func TestLeaveWhileDown(t *testing.T) {
	store := &savingStore{down: true}
	s := NewKeeper(store, slog.New(slog.DiscardHandler)).New(Key{ID: "changed"})
	s.Restore(Session{Initialize: "{}", Level: `{"level":"info"}`})
	s.Save()
	store.asked = 0
	s.Part()
	s.Leave(false)
	if store.asked != 1 {
		t.Errorf("asked the Store %d times", store.asked)
	}
}

// A session is not stored before its server has answered initialize, and not after the front has left it: its row in
// the Store may be gone, and a client could resume a session that has ended.
func TestSaveOnlyWhileOwned(t *testing.T) {
	store := &savingStore{}
	s := NewKeeper(store, slog.New(slog.DiscardHandler)).New(Key{ID: "ended"})
	s.Save()
	s.Restore(Session{Initialize: "{}"})
	s.Part()
	s.Leave(true)
	s.Save()
	if store.asked != 1 { // to leave it
		t.Errorf("asked the Store %d times", store.asked)
	}
}

// Each outage of the Store is logged once.
func TestOutagesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that nothing is saved again meanwhile
		var log strings.Builder
		store := &savingStore{}
		s := NewKeeper(store, slog.New(slog.NewTextHandler(&log, nil))).New(Key{ID: "kept"})
		s.Restore(Session{Initialize: "{}"})
		for _, store.down = range []bool{true, true, false, true} {
			s.Save()
		}
		if n := strings.Count(log.String(), "sessions cannot be stored"); n != 2 {
			t.Errorf("%d warnings: %s", n, log.String())
		}
	})
}

// A session that could not be stored is stored soon after the Store answers again: the front may be killed.
func TestSaveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &savingStore{down: true}
		s := NewKeeper(store, slog.New(slog.DiscardHandler)).New(Key{ID: "changed"})
		s.Restore(Session{Initialize: "{}", Level: `{"level":"info"}`})
		s.Save()
		time.Sleep(10 * saveAgainAfter)
		s.mu.Lock()
		store.down = false
		s.mu.Unlock()
		time.Sleep(saveAgainAfter)
		synctest.Wait()
		if store.level != `{"level":"info"}` || s.Unsaved() {
			t.Errorf("stored with the level %q", store.level)
		}
	})
}

// Only what another server needs is recorded, and no long text of a client.
func TestNote(t *testing.T) {
	k := NewKeeper(&countingStore{}, slog.New(slog.DiscardHandler))
	for message, want := range map[string]bool{
		`{"id":1,"method":"initialize","params":{"text":""}}`:                                                true,
		fmt.Sprintf(`{"id":1,"method":"initialize","params":{"text":%q}}`, strings.Repeat("x", maxRecorded)): false,
		`{"id":1,"method":"resources/subscribe","params":{"uri":"a"}}`:                                       true,
		`{"id":1,"method":"tools/list"}`:                                                                     false,
		`{"method":"initialize"}`:                                                                            false,
	} {
		m := &wire.Message{}
		m.Reset(wire.Client, []byte(message))
		m.LookEnvelope()
		if got := k.New(Key{}).Note(m) != nil; got != want {
			t.Errorf("%.60s: recorded is %v", message, got)
		}
	}
}
