package revive

import (
	"testing"
	"time"
)

// The watch of a server looks at the link of that server, also if it begins after the server has ended and
// is not started again.
func TestWatchBeginsAfterTheEnd(t *testing.T) {
	var watch func()
	v := New(nil, Policy{Hang: time.Hour}, Options{Go: func(f func()) { watch = f }})
	l := NewLink(LinkOptions{}, Ending{})
	close(l.ended)
	v.Run(t.Context(), l)
	watch()
}
