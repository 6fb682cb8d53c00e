package chain

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A line is not longer than the room that is planned for it, and at most a byte shorter.
func TestLineLen(t *testing.T) {
	for _, n := range []int{3, 1000} {
		last := tip{seq: math.MaxUint64 - 1}
		if got := len(last.next(nil, make([]byte, n))); got > lineLen(n) || got < lineLen(n)-1 {
			t.Errorf("a line with a body of %d bytes has %d bytes, and %d are planned", n, got, lineLen(n))
		}
	}
}

// A line of MaxLine bytes is a line, a longer one is not.
func TestLongestLine(t *testing.T) {
	for over, want := range map[int]bool{0: true, 1: false} {
		empty := len((&tip{}).next(nil, []byte(`{"x":""}`)))
		text := (&tip{}).next(nil, append(append([]byte(`{"x":"`), bytes.Repeat([]byte{'x'}, MaxLine-empty+over)...), `"}`...))
		if _, ok := parseLine(text); ok != want || len(text) != MaxLine+over {
			t.Errorf("a text of %d bytes is a line: %v", len(text), ok)
		}
	}
	for over, want := range map[int]bool{0: true, 1: false} {
		l := New(Options{File: filepath.Join(t.TempDir(), "audit.jsonl")})
		body := append(append([]byte(`{"x":"`), bytes.Repeat([]byte{'x'}, MaxLine-lineLen(len(`{"x":""}`))+over)...), `"}`...)
		if err := l.Commit(body).Err(); (err == nil) != want {
			t.Errorf("a record whose line may have %d bytes: %v", lineLen(len(body)), err)
		}
		_ = l.Close(time.Second)
	}
}

// A record is written to the file if it fits exactly, and otherwise to the next one. An empty file has room
// for one record, however small the file may be.
func TestRoomInAFile(t *testing.T) {
	for _, test := range []struct {
		name    string
		maxSize func(size int64) int64 // of a file with one record
		files   int                    // before the last one, after two further records
	}{
		{"room for one more", func(size int64) int64 { return size + int64(lineLen(len(body(1)))) }, 1},
		{"a byte less", func(size int64) int64 { return size + int64(lineLen(len(body(1)))) - 1 }, 2},
		{"no room at all", func(int64) int64 { return 1 }, 2},
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		w := newFile(path, 0, &disk{room: 1 << 20})
		if _, err := w.append(queueOf(body(0))); err != nil {
			t.Fatal(err)
		}
		w.maxSize = test.maxSize(w.size)
		for i := range 2 {
			if _, err := w.append(queueOf(body(1 + i))); err != nil {
				t.Fatal(err)
			}
		}
		names, err := rotatedFiles(path)
		check(t, err)
		if len(names) != test.files {
			t.Errorf("%s: %d files before the last one", test.name, len(names))
		}
		var v Verifier
		if err := verify(t, path, &v); err != nil || v.Records != 3+len(names)+1 {
			t.Errorf("%s: %v, %d records", test.name, err, v.Records)
		}
	}
}

// Of a write that failed within it, the lines before the failure are in the file. Those that the caller did not
// pass do not count.
func TestComplete(t *testing.T) {
	const text = "{}\n{}\n{}\n"
	for _, test := range []struct {
		w    file
		text string
		n    int
		want int
	}{
		{file{}, text, 1, 0},
		{file{}, text, 2, 1},
		{file{}, text, 3, 1},
		{file{}, text, len(text), 3},
		{file{newline: true}, "\n" + text, 1, 0},
		{file{newline: true}, "\n" + text, 4, 1},
		{file{first: []byte("{}")}, text, 1, 0},
		{file{first: []byte("{}")}, text, 3, 0},
		{file{first: []byte("{}")}, text, 6, 1},
		{file{first: []byte("{}"), newline: true}, "\n" + text, 7, 1},
	} {
		if got := test.w.complete([]byte(test.text), test.n); got != test.want {
			t.Errorf("%d bytes of %q were written: %d records, want %d", test.n, test.text, got, test.want)
		}
	}
}

// A record that nobody waits for is written soon, even if no other follows.
func TestSingleRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path})
		for i := range 3 {
			l.Append(body(i))
			time.Sleep(DefaultLinger - 1)
			synctest.Wait()
			if n := linesSoFar(t, path); n != i+1 && i > 0 {
				t.Errorf("%d lines before the %dth record is due", n, i+1)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if n := linesSoFar(t, path); n != i+2 {
				t.Errorf("%d lines after the %dth record was due", n, i+1)
			}
		}
		check(t, l.Close(time.Second))
	})
}

func linesSoFar(t *testing.T, path string) int {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		return 0
	}
	defer s.Close()
	return len(lines(t, path))
}

// The queue takes exactly as many bytes as it may have, also after a record about lost records was in it.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: filepath.Join(t.TempDir(), "audit.jsonl"), Queue: 2 * len(body(0))})
		for round := range 3 {
			for i := range 3 {
				l.Append(body(i))
			}
			time.Sleep(time.Second)
			synctest.Wait()
			l.mu.Lock()
			if lost := l.lost + l.gaps; lost != round+1 || l.bytes != 0 || l.waiting != 0 {
				t.Errorf("round %d: %d records are lost, %d with %d bytes wait", round, lost, l.waiting, l.bytes)
			}
			l.mu.Unlock()
		}
		if err := l.Close(time.Second); err == nil || !strings.HasPrefix(err.Error(), "3 audit records") {
			t.Errorf("at the end: %v", err)
		}
	})
}

// The files before the last one are in the order of their numbers, and no other file is among them.
func TestRotatedFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	for _, name := range []string{
		"audit-000000000010.jsonl", "audit-1000000000000.jsonl", "audit-999999999999.jsonl", "audit-000000000009.jsonl",
		"audit-1.jsonl", "audit-00000000001x.jsonl", "audit-000000000011.json", "audits-000000000011.jsonl", "audit.jsonl", "audit.jsonl.key",
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	names, err := rotatedFiles(path)
	check(t, err)
	for i, name := range names {
		names[i] = strings.TrimPrefix(filepath.Base(name), "audit-")
	}
	if got := strings.Join(names, " "); got != "000000000009.jsonl 000000000010.jsonl 999999999999.jsonl 1000000000000.jsonl" {
		t.Errorf("the files are %s", got)
	}
}

// Many records are written without delay.
func TestFullWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path, Linger: time.Hour})
		large := append(append([]byte(`{"x":"`), bytes.Repeat([]byte{'x'}, maxWrite/2)...), `"}`...)
		for i, want := range []int{0, 3} {
			l.Append(large)
			synctest.Wait()
			if n := linesSoFar(t, path); n != want {
				t.Errorf("%d lines after %d records of half of the size of a write", n, i+1)
			}
		}
		check(t, l.Close(time.Second))
	})
}

// A file that should hold the key and does not is left as it is. The log then has a key that is its own.
func TestDamagedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	check(t, os.WriteFile(keyFile(path), []byte("damaged"), 0o600))
	var log bytes.Buffer
	o := Options{File: path, Log: slog.New(slog.NewTextHandler(&log, nil))}
	l := New(o)
	key, other := l.Key(), New(o).Key()
	if len(key) != keyLen || bytes.Equal(key, other) || !bytes.Equal(key, l.Key()) {
		t.Errorf("the keys are %x and %x", key, other)
	}
	if text, err := os.ReadFile(keyFile(path)); string(text) != "damaged" || err != nil || strings.Count(log.String(), "holds no key: remove it") != 2 {
		t.Errorf("the file has %q, %v, and the log\n%s", text, err, &log)
	}
}
