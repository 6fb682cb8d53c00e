package outbox

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// write writes text as the events of one write, and returns the id of the last of them.
func (r *Record) write(text string) (id string) {
	field := string(r.AppendNext(nil))
	r.Keep([]byte(text + field + "\n"))
	r.Mark()
	return strings.TrimSpace(strings.TrimPrefix(field, "id: "))
}

// A record has what follows an id, as long as it is not too long to be kept.
func TestRecord(t *testing.T) {
	r := newRecord([]byte("1"))
	begin := r.name + "0"
	expect := func(id, want string, kept bool) {
		t.Helper()
		got, ok := r.After(id)
		if ok != kept || !strings.HasPrefix(string(got), want) || (want == "") != (len(got) == 0) {
			t.Errorf("after %s: %.60q (%t), want %.60q (%t)", id, got, ok, want, kept)
		}
	}
	expect(begin, "", true)
	first := r.write("data: a\n")
	expect(begin, "data: a\n", true)
	expect(first, "", true)
	second := r.write("data: b\n")
	expect(begin, "data: a\n", true)
	expect(first, "data: b\n", true)
	expect(r.name+"3", "", false)
	expect(r.name+"-1", "", false)
	expect(r.name+"x", "", false)
	expect("other", "", false)

	long := strings.Repeat("x", recordRoom-100) + "\n"
	third := r.write(long)
	expect(first, long, true) // without b, but with the last
	expect(second, long, true)
	fourth := r.write("data: d\n" + long)
	expect(second, "data: d\n", true)
	expect(third, "data: d\n", true)
	expect(fourth, "", true)
	fifth := r.write(long + long)
	expect(fourth, "", false)
	expect(fifth, "", true)
	sixth := r.write("data: f\n")
	expect(fifth, "data: f\n", true)
	expect(sixth, "", true)

	// A write that is not over has no id.
	r.Keep([]byte("data: half"))
	expect(sixth, "data: half", true)
	r.Keep([]byte(long + long))
	expect(sixth, "", false)
	r.Mark()
	expect(r.name+"7", "", true)

	if newRecord([]byte(strings.Repeat("9", 300))) != nil {
		t.Error("an id of 300 bytes was accepted")
	}
}

func TestParseID(t *testing.T) {
	for _, id := range []string{"1", `"a.b"`, `"ä"`, "-1.5"} {
		if got, ok := ParseID(newRecord([]byte(id)).name + "12"); !ok || string(got) != id {
			t.Errorf("%s: %s (%t)", id, got, ok)
		}
	}
	end := strings.TrimSpace(strings.TrimPrefix(EndField(), "id: "))
	if got, ok := ParseID(end); !ok || len(got) > 0 {
		t.Errorf("%s: %s (%t)", end, got, ok)
	}
	for _, id := range []string{"", "1", "a.b", "a.!.1", "a.MQ", "a.MQ.1.2", "a.e30.1", "a.MQo.1", "a.W10.1", "a._w.1"} {
		if got, ok := ParseID(id); ok {
			t.Errorf("%q is accepted: %s", id, got)
		}
	}
}

// While many want to read a stream, one reads at a time, and the last of them gets its end.
func TestTakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Recorder
		s := newStream()
		reader := o.Record(s, []byte("1"), func() {})
		id := reader.name + "0"
		var reading sync.Mutex
		read := func(q *Reader) {
			if !reading.TryLock() {
				t.Error("two read")
			}
			for over := false; !over; {
				select {
				case <-s.Wake():
					_, over, _ = s.Take(nil)
				case <-q.Replaced():
					over = true
				}
			}
			reading.Unlock()
			q.Leave(true)
		}
		var all sync.WaitGroup
		all.Go(func() { read(reader) })
		for range 20 {
			all.Go(func() { read(o.TakeUp(id, func() {})) })
		}
		synctest.Wait()
		s.Push(Item{Data: []byte("{}"), Final: true}, true)
		all.Wait()
		if over, abandoned := s.Progress(); !over || abandoned {
			t.Error(over, abandoned)
		}
		synctest.Wait()
		o.Forget()
		if o.TakeUp(id, func() {}) != nil {
			t.Error("a forgotten stream was taken up")
		}
	})
}

// A parked stream does not block who pushes, and is abandoned if it gets too much.
func TestParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Recorder
		s := newStream()
		reader := o.Record(s, []byte("1"), func() {})
		pushed := 0
		go func() {
			for s.PushEvent([]byte(`"` + strings.Repeat("x", 1000) + `"`)) {
				pushed++
			}
		}()
		synctest.Wait() // there is no room
		if held := bufferedBytes(s); held > streamRoom {
			t.Errorf("%d bytes wait", held)
		}
		reader.Leave(true)
		synctest.Wait() // Push has returned
		if over, abandoned := s.Progress(); over || !abandoned || pushed == 0 {
			t.Error(over, abandoned, pushed)
		}
	})
}

// What waits on a stream for a client that has left is bounded also if it was pushed before.
func TestParkedWithLongMessage(t *testing.T) {
	var o Recorder
	s := newStream()
	reader := o.Record(s, []byte("1"), func() {})
	s.Push(Item{Data: make([]byte, streamRoom+1)}, false)
	reader.Leave(true)
	if _, abandoned := s.Progress(); !abandoned {
		t.Errorf("%d bytes wait", bufferedBytes(s))
	}
}

// A call that runs is forgotten later than those whose clients have all of their streams.
func TestFinishedStreamsAreForgottenFirst(t *testing.T) {
	var o Recorder
	running := o.Record(newStream(), []byte("1"), func() {})
	for range maxRecorded {
		s := newStream()
		reader := o.Record(s, []byte("2"), func() {})
		s.Close()
		reader.Leave(true)
	}
	running.Leave(true)
	if o.TakeUp(running.name+"0", func() {}) == nil {
		t.Error("a running call was forgotten")
	}
	if len(o.all) != maxRecorded {
		t.Errorf("%d streams are recorded", len(o.all))
	}
	o.Forget()
}
