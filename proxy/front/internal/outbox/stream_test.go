package outbox

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newStream() *Stream {
	s := &Stream{}
	s.Init(true)
	return s
}

// A short part of a message occupies as much memory as a long one, and is counted so.
func TestShortParts(t *testing.T) {
	s := newStream()
	n := 0
	for ; n <= streamRoom; n++ {
		i, _ := Cut([]byte("x"))
		if !s.Offer(i) {
			break
		}
	}
	if n*partRoom > streamRoom {
		t.Errorf("%d parts wait and occupy %d bytes", n, n*partRoom)
	}
}

// Events that wait for a slow client occupy no more memory than the limit, whatever their sizes and
// order.
func TestWaitingEvents(t *testing.T) {
	event := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	for name, frames := range map[string][]string{
		"short":                  {event(30)},
		"a bare CR after leased": {event(4100), "{\r}"},
		"long after leased":      {event(4100), event(textRoom / 2)},
		"long after short":       {event(30), event(textRoom / 2)},
		"longest that is text":   {event(textRoom/2 - 40)},
		"many bare CRs":          {event(30), strings.Repeat("\r", 6000)},
		"5 MiB first":            {event(5 << 20), event(30)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStream()
				go func() {
					for s.PushEvent([]byte(frames[0])) {
						frames = append(frames[1:], frames[0])
					}
				}()
				synctest.Wait()
				if held, most := bufferedBytes(s), max(streamRoom, cap(s.items[0].Data)); held > most || held < most-2*textRoom {
					t.Errorf("%d items occupy %d bytes, want about %d at most", len(s.items), held, most)
				}
				s.Abandon()
			})
		})
	}
}

// bufferedBytes returns the size of the memory that a stream holds.
func bufferedBytes(t *Stream) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := cap(t.text)
	for _, i := range t.items {
		n += cap(i.Data)
	}
	return n
}

// A lease counts its releases.
type lease int

func (l *lease) Hold()    {}
func (l *lease) Release() { *l++ }

// Abandoning a stream releases the leases of its items once.
func TestAbandonReleases(t *testing.T) {
	s := newStream()
	var released lease
	s.Push(Item{Data: []byte("{}"), Lease: &released}, false)
	s.Abandon()
	s.Abandon()
	if released != 1 {
		t.Errorf("the memory of a message was released %d times, want once", released)
	}
}

func TestCut(t *testing.T) {
	for _, size := range []int{0, 1, partRoom - 1, partRoom, partRoom + 1, 3*partRoom + 5} {
		whole := bytes.Repeat([]byte("0123456789a"), size/11+1)[:size]
		source := bytes.Clone(whole)
		var got []byte
		for rest := source; ; {
			var i Item
			if i, rest = Cut(rest); len(i.Data) > partRoom {
				t.Fatalf("a part has %d bytes", len(i.Data))
			}
			clear(source[:len(source)-len(rest)]) // a part is a copy
			got = append(got, i.Data...)
			i.Release()
			if len(rest) == 0 {
				break
			}
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("the parts of %d bytes differ from their source", size)
		}
	}
}

// What another goroutine offers does not come between the parts of a message.
func TestOfferBetweenParts(t *testing.T) {
	s := newStream()
	i, _ := Cut([]byte("1"))
	s.Push(i, false)
	if s.Offer(Item{Data: []byte("{}")}) {
		t.Error("accepted within a message")
	}
	i.Part = Last
	s.Push(i, false)
	if !s.Offer(Item{Data: []byte("{}")}) {
		t.Error("not accepted after a message")
	}
}

// A timer of a stream that nobody reads any more does not wait.
func TestStopAtEnd(t *testing.T) {
	for _, late := range []bool{false, true} {
		var s Stream
		s.Init(true)
		timer := time.NewTimer(time.Hour)
		if late {
			s.Abandon()
		}
		s.StopAtEnd(timer)
		if !late {
			s.Close() // what is queued is still read
			if !timer.Reset(time.Hour) {
				t.Error("the timer of a stream that is still read was stopped")
			}
			s.Abandon()
		}
		if timer.Stop() {
			t.Errorf("late %t: the timer was not stopped", late)
		}
	}
}
