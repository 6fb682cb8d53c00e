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
	var all []*Kept
	for _, id := range []string{"slow", "unknown", "last"} {
		s := k.New(Key{ID: id})
		s.Restore(Session{})
		all = append(all, s)
	}
	lost := make(chan string, len(all))
	err := Recheck(t.Context(), all, func(s *Kept) {
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
