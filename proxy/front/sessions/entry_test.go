package sessions

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A takenStore has sessions that other fronts have taken. It says so of the session "slow" when it
// may, and not at all of the session "unknown".
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

// A session of which the Store does not say at once who has it delays no other.
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

// A leftStore counts who takes its sessions.
type leftStore struct {
	Store
	takes int
}

func (s *leftStore) Take(context.Context, Key) (Session, error) {
	s.takes++
	return Session{}, nil
}

func (s *leftStore) Leave(context.Context, Key, bool) error { return nil }

// A session that was left while the Store is asked about it is not taken back: no front could
// have it until this one ends.
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
