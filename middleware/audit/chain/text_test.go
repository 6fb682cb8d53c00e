package chain

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// later is a record that is written out by the log, and may be so once.
type later struct {
	t    *testing.T
	body []byte
	told int
}

func (r *later) AppendTo(dst []byte) []byte {
	if r.told++; r.told > 1 {
		r.t.Errorf("%s was asked for again", r.body)
	}
	return append(dst, r.body...)
}

// Records that are written out later stand in the file where they were appended,
// also when the disk was full in between.
func TestTextsKeepTheirPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path})
		d := &disk{room: 150} // for the first line of the file alone
		l.file.write = d.write
		for i := range 30 {
			switch i % 3 {
			case 0:
				l.Append(body(i))
			default:
				l.AppendText(&later{t: t, body: body(i)}, 100)
			}
			if i == 20 {
				time.Sleep(3 * time.Second)
				synctest.Wait()
				d.set(1 << 20)
			}
		}
		if r := l.Commit(body(30)); true {
			if <-r.Done(); r.Err() != nil {
				t.Error(r.Err())
			}
		}
		if err := l.Close(time.Second); err != nil {
			t.Fatal(err)
		}
	})
	var want strings.Builder
	for i := range 31 {
		fmt.Fprintf(&want, "%d ", i)
	}
	var got strings.Builder
	for _, line := range lines(t, path) {
		if _, n, ok := bytes.Cut(line, []byte(`"n":`)); ok {
			fmt.Fprintf(&got, "%s ", bytes.TrimRight(n, "}\n"))
		}
	}
	if got.String() != want.String() {
		t.Errorf("got  %s\nwant %s", got.String(), want.String())
	}
	if err := verify(t, path, &Verifier{}); err != nil {
		t.Error(err)
	}
}

// A record that turns out too long for a line is missing, and the log says so.
func TestTextTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path})
		l.AppendText(&later{t: t, body: append(append([]byte(`{"x":"`), bytes.Repeat([]byte{'x'}, MaxLine)...), `"}`...)}, 100)
		l.Append(body(1))
		time.Sleep(time.Second)
		synctest.Wait()
		l.AppendText(&later{t: t, body: body(2)}, 100)
		if err := l.Close(time.Second); !errors.Is(err, ErrLost) || !strings.HasPrefix(err.Error(), "1 ") {
			t.Errorf("at the end: %v", err)
		}
	})
	var v Verifier
	if err := verify(t, path, &v); err != nil || v.Records != 4 || len(v.Remarks) != 1 {
		t.Errorf("%v, %d records, %v", err, v.Records, v.Remarks)
	}
}

// What waits to be written out is bounded as everything that waits is.
func TestTextsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path, Queue: 1000})
		for i := range 30 { // of which the queue has room for 10
			l.AppendText(&later{t: t, body: body(i)}, 100)
		}
		if err := l.Close(time.Second); !errors.Is(err, ErrLost) || !strings.HasPrefix(err.Error(), "20 ") {
			t.Errorf("at the end: %v", err)
		}
	})
}
