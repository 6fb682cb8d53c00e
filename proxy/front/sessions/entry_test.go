package sessions

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A takenStore has sessions that other fronts have taken. Take returns for the session "slow" only
// when the test allows it, and fails for the session "unknown".
type takenStore struct {
	Store
	may chan struct{}
}

var errAway = errors.New("the store is away")

func (s takenStore) Take(_ context.Context, k Key) (Session, error) {
	switch k.ID {
	case "slow":
		<-s.may
	case "unknown":
		return Session{}, errAway
	}
	return Session{}, ErrElsewhere
}

// A session for which the Store answers slowly does not delay others.
func TestRecheck(t *testing.T) {
	store := takenStore{may: make(chan struct{})}
	k := NewKeeper(store, slog.New(slog.DiscardHandler))
	var all []*Entry
	for _, id := range []string{"slow", "unknown", "last"} {
		s := k.New(Key{ID: id})
		s.Restore(Session{})
		all = append(all, s)
	}
	lost := make(chan string, len(all))
	err := Recheck(t.Context(), all, func(s *Entry) {
		if lost <- s.Key.ID; s.Key.ID == "last" {
			close(store.may)
		}
	})
	if first, second := <-lost, <-lost; first != "last" || second != "slow" || len(lost) > 0 {
		t.Errorf("lost %s, then %s, and %d more", first, second, len(lost))
	}
	if !errors.Is(err, errAway) {
		t.Error(err)
	}
}

// A leftStore counts the calls of Take.
type leftStore struct {
	Store
	takes int
}

func (s *leftStore) Take(context.Context, Key) (Session, error) {
	s.takes++
	return Session{}, nil
}

func (s *leftStore) Leave(context.Context, Key, bool) error { return nil }

// A session that is left during Recheck is not taken back. Otherwise no front could have it until
// this one ends.
func TestRecheckLeftSession(t *testing.T) {
	store := &leftStore{}
	s := NewKeeper(store, slog.New(slog.DiscardHandler)).New(Key{ID: "left"})
	s.Restore(Session{})
	s.Part()
	s.Leave(false)
	err := Recheck(t.Context(), []*Entry{s}, func(*Entry) { t.Error("it counts as lost") })
	if err != nil || store.takes > 0 {
		t.Errorf("taken %d times, %v", store.takes, err)
	}
}
