package identity

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A read of a key set that ignores its timeout, as from a lost network disk, holds up no caller.
func TestKeySetThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newKeyCache("keys.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		c.read = func(context.Context) ([]byte, error) { <-release; return []byte("{}"), nil }
		c.timeout, c.now = time.Second, time.Now
		for range 2 {
			if set, err := c.get(t.Context(), nil); set != nil || !errors.Is(err, ErrKeySet) {
				t.Errorf("got %v, %v", set, err)
			}
		}
		close(release)
	})
}
