package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Records are in the file in the order of Append, even if the disk was full for a while.
func TestRecordsKeepTheirOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path})
		d := &disk{room: 150} // for the first line of the file only
		l.file.write = d.write
		for i := range 30 {
			l.Append(body(i))
			if i%7 == 0 { // so that writing is tried again
				time.Sleep(3 * time.Second)
				synctest.Wait()
			}
		}
		d.set(1 << 20)
		if r := l.Commit(body(30)); true {
			if <-r.Done(); r.Err() != nil {
				t.Error(r.Err())
			}
		}
		check(t, l.Close(time.Second))
	})
	var want, got strings.Builder
	for i := range 31 {
		fmt.Fprintf(&want, "%d ", i)
	}
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

// A record that is too long for a line is lost, and a gap record reports it.
func TestRecordTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(Options{File: path})
	l.Append(append(append([]byte(`{"x":"`), bytes.Repeat([]byte{'x'}, MaxLine)...), `"}`...))
	l.Append(body(1))
	<-l.Commit(body(2)).Done()
	if err := l.Close(time.Minute); !errors.Is(err, ErrLost) || !strings.HasPrefix(err.Error(), "1 ") {
		t.Errorf("at the end: %v", err)
	}
	var v Verifier
	if err := verify(t, path, &v); err != nil || v.Records != 4 || len(v.Remarks) != 1 {
		t.Errorf("%v, %d records, %v", err, v.Records, v.Remarks)
	}
}

// Records that are lost while the disk is full are reported once, behind those that waited: the memory for
// the reports does not grow, and they are where the records are missing.
func TestLostRecordsAreReportedOnce(t *testing.T) {
	for _, pause := range []time.Duration{0, 2 * time.Second} { // without or with attempts to write between them
		t.Run(pause.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			synctest.Test(t, func(t *testing.T) {
				l := New(Options{File: path, Queue: 3 * len(body(0))})
				d := &disk{}
				l.file.write = d.write
				for i := range 10 {
					l.Append(body(i))
					time.Sleep(pause)
					synctest.Wait()
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if n := len(l.unwritten); n != 3 {
					t.Errorf("%d records wait, want 3", n)
				}
				d.set(1 << 20)
				if err := l.Close(time.Second); err == nil || !strings.HasPrefix(err.Error(), "7 audit records") {
					t.Errorf("at the end: %v", err)
				}
			})
			var got []string
			for _, line := range lines(t, path) {
				var n note
				check(t, json.Unmarshal(line, &n))
				got = append(got, fmt.Sprint(n.Kind, n.Records))
			}
			if want := "begin0 call0 call0 call0 gap7"; strings.Join(got, " ") != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
}
