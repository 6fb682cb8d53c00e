package chain

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
)

// body returns a record.
func body(i int) []byte { return fmt.Appendf(nil, `{"kind":"call","n":%d}`, i) }

var check = testkit.Check

// write writes records from..to-1 to the log at path, as one process.
func write(t *testing.T, o Options, from, to int) {
	t.Helper()
	l := New(o)
	for i := from; i < to; i++ {
		l.Append(body(i))
	}
	check(t, l.Close(10*time.Second))
}

// verify verifies the log at path.
func verify(t *testing.T, path string, v *Verifier) error {
	t.Helper()
	s, err := Open(path)
	check(t, err)
	defer s.Close()
	for _, f := range s.Files {
		if err := v.File(filepath.Base(f.Name), f); err != nil {
			return err
		}
	}
	return v.Close()
}

func lines(t *testing.T, path string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return slices.Collect(bytes.Lines(b))
}

func TestVerifyFindsTheFirstManipulation(t *testing.T) {
	forged := func(l line, body string) []byte {
		t := tip{l.seq - 1, l.prev}
		return t.next(nil, []byte(body))
	}
	parsed := func(b []byte) line {
		l, ok := parseLine(b)
		if !ok {
			t.Fatalf("no line: %s", b)
		}
		return l
	}
	tests := []struct {
		name string
		// edit gets the lines: begin and records 0 to 5, numbered 1 to 7.
		edit   func(l [][]byte) [][]byte
		line   int // of the fault; 0 if none is expected
		expect bool
	}{
		{"nothing", func(l [][]byte) [][]byte { return l }, 0, true},
		{"a byte of a body", func(l [][]byte) [][]byte { l[3] = bytes.Replace(l[3], []byte("n\":2"), []byte("n\":9"), 1); return l }, 4, false},
		{"a byte that breaks the JSON", func(l [][]byte) [][]byte { l[3][0] = 'x'; return l }, 4, false},
		{"the number of a line", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`"seq":4`), []byte(`"seq":9`), 1)
			return l
		}, 4, false},
		{"the digest in a line", func(l [][]byte) [][]byte {
			p := parsed(l[3])
			p.prev[0]++
			l[3] = forged(p, `{"kind":"call","n":2}`)
			return l
		}, 3, false},
		{"a line end", func(l [][]byte) [][]byte { l[3] = append(l[3][:len(l[3])-1], '\r', '\n'); return l }, 4, false},
		{"a blank line", func(l [][]byte) [][]byte { return slices.Insert(l, 3, []byte("\n")) }, 4, false},
		{"a line dropped", func(l [][]byte) [][]byte { return slices.Delete(l, 3, 4) }, 4, false},
		{"lines dropped", func(l [][]byte) [][]byte { return slices.Delete(l, 2, 5) }, 3, false},
		{"the first line dropped", func(l [][]byte) [][]byte { return l[1:] }, 1, false},
		{"lines swapped", func(l [][]byte) [][]byte { l[2], l[3] = l[3], l[2]; return l }, 3, false},
		{"a line twice", func(l [][]byte) [][]byte { return slices.Insert(l, 3, l[3]) }, 5, false},
		{"a line added", func(l [][]byte) [][]byte { return slices.Insert(l, 3, forged(parsed(l[3]), `{"kind":"call","n":77}`)) }, 5, false},
		{"a first line added", func(l [][]byte) [][]byte {
			return slices.Insert(l, 3, forged(parsed(l[3]), `{"kind":"begin","version":1}`))
		}, 4, false},
		{"a repair without an incomplete line", func(l [][]byte) [][]byte {
			return append(l[:3], forged(parsed(l[3]), `{"kind":"repaired","torn":{"bytes":3,"digest":"x"}}`))
		}, 4, false},
		{"a text added at the end", func(l [][]byte) [][]byte { return append(l, []byte("x\n")) }, 8, false},
		{"a text added that is too long for a line", func(l [][]byte) [][]byte {
			return slices.Insert(l, 3, append(bytes.Repeat([]byte{'x'}, 2*MaxLine), '\n'))
		}, 4, false},
		// Changes that a chain alone does not show:
		{"the end cut off", func(l [][]byte) [][]byte { return l[:5] }, 0, false},
		{"the last line changed", func(l [][]byte) [][]byte { l[6] = forged(parsed(l[6]), `{"kind":"call","n":78}`); return l }, 0, false},
		{"an incomplete end", func(l [][]byte) [][]byte { l[6] = l[6][:20]; return l }, 0, false},
		{"an incomplete end that is too long for a line", func(l [][]byte) [][]byte { return append(l, bytes.Repeat([]byte{'x'}, 2*MaxLine)) }, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			write(t, Options{File: path}, 0, 6)
			l := lines(t, path)
			last := parsed(l[6]).digest
			l = test.edit(l)
			check(t, os.WriteFile(path, bytes.Join(l, nil), 0o600))
			err := verify(t, path, &Verifier{})
			var fault *Fault
			switch errors.As(err, &fault); {
			case test.line == 0 && err != nil, test.line != 0 && fault == nil, fault != nil && fault.Line != test.line:
				t.Errorf("got %v, want a fault in line %d", err, test.line)
			}
			// Every change is found with the digest of the last line.
			if err := verify(t, path, &Verifier{Expect: last}); (err == nil) != test.expect {
				t.Errorf("with the last digest known: %v", err)
			}
		})
	}
}

// A flipped bit anywhere before the last line is found.
func TestVerifyFindsAnyFlippedBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	write(t, Options{File: path}, 0, 3)
	whole := bytes.Join(lines(t, path), nil)
	lastLine := bytes.LastIndexByte(whole[:len(whole)-1], '\n')
	for i := range lastLine {
		b := bytes.Clone(whole)
		b[i] ^= 1
		var v Verifier
		if v.File("a", bytes.NewReader(b)) == nil && v.Close() == nil {
			t.Errorf("byte %d of %q flipped: nothing found", i, whole[max(0, i-10):i+1])
		}
	}
}

func TestIncompleteLines(t *testing.T) {
	tests := []struct {
		name    string
		partial string // the incomplete line that a dead process left
		keep    int    // how many whole lines were before it
	}{
		{"within a record", `{"seq":4,"prev":"sha256:12`, 3},
		{"before a newline", `{"seq":4,"prev":"sha256:12"}`, 3},
		{"one byte", `{`, 3},
		{"within the first line", `{"seq":1,"pr`, 0},
		{"within the first line, early", `{`, 0},
		{"within a repair", "{\"seq\":4,\"prev\":\"sha25\n{\"seq\":4", 3},
		{"a blank line", "\n", 3},
		{"longer than a line may be", strings.Repeat("x", MaxLine+10), 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			write(t, Options{File: path}, 0, 2)
			whole := bytes.Join(lines(t, path)[:test.keep], nil)
			check(t, os.WriteFile(path, append(whole, test.partial...), 0o600))
			write(t, Options{File: path}, 2, 4)
			var v Verifier
			check(t, verify(t, path, &v))
			if len(v.Remarks) != 1 || !strings.Contains(v.Remarks[0].What, "ended within a line") || v.Remarks[0].Line != test.keep+1 {
				t.Errorf("remarks: %v", v.Remarks)
			}
			text := string(bytes.Join(lines(t, path), nil))
			if !strings.Contains(text, test.partial) {
				t.Errorf("the incomplete line is gone:\n%.1000s", text)
			}
			// A change of the incomplete line is found.
			check(t, os.WriteFile(path, []byte(strings.Replace(text, test.partial, "x"+test.partial, 1)), 0o600))
			if err := verify(t, path, &Verifier{}); err == nil {
				t.Error("a byte added to the incomplete line was not found")
			}
		})
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	o := Options{File: path, MaxSize: 600}
	write(t, o, 0, 5)
	write(t, o, 5, 20)
	names, err := rotatedFiles(path)
	if err != nil || len(names) < 4 {
		t.Fatalf("%v, %v: want some files", names, err)
	}
	for _, name := range append(names, path) {
		if info, err := os.Stat(name); err != nil || info.Size() > o.MaxSize {
			t.Errorf("%s: %v, %v", name, info.Size(), err)
		}
	}
	var v Verifier
	if err := verify(t, path, &v); err != nil || v.First != 1 || int(v.Last) != v.Records || v.Records < 20+len(names) {
		t.Fatalf("%v: %d records, the first is %d and the last %d", err, v.Records, v.First, v.Last)
	}

	t.Run("a file in the middle is gone", func(t *testing.T) {
		hide(t, names[1])
		wantFault(t, path, &Verifier{}, filepath.Base(names[2]), 1)
	})
	t.Run("the oldest is gone", func(t *testing.T) {
		e, err := endOf(names[0])
		check(t, err)
		hide(t, names[0])
		wantFault(t, path, &Verifier{}, filepath.Base(names[1]), 1)
		v := Verifier{After: e.tip.digest}
		if err := verify(t, path, &v); err != nil || v.First != e.tip.seq+1 {
			t.Errorf("with its last digest known: %v, the first record is %d", err, v.First)
		}
		wantFault(t, path, &Verifier{After: Digest{1}}, filepath.Base(names[1]), 1)
	})
	t.Run("a line at the end of one is gone", func(t *testing.T) {
		l := lines(t, names[1])
		restore := bytes.Join(l, nil)
		defer os.WriteFile(names[1], restore, 0o600)
		os.WriteFile(names[1], bytes.Join(l[:len(l)-1], nil), 0o600)
		wantFault(t, path, &Verifier{}, filepath.Base(names[2]), 1)
	})
	t.Run("the file is gone, and the chain continues from the one before", func(t *testing.T) {
		hide(t, path)
		write(t, o, 20, 21)
		if err := verify(t, path, &Verifier{}); err != nil {
			t.Error(err)
		}
	})
}

// A line that lacks only its newline is complete.
func TestEndWithoutNewline(t *testing.T) {
	for name, o := range map[string]Options{"one file": {}, "a full file": {MaxSize: 600}} {
		for keep := 1; keep <= 4; keep++ {
			t.Run(fmt.Sprintf("%s, line %d", name, keep), func(t *testing.T) {
				o := o
				o.File = filepath.Join(t.TempDir(), "audit.jsonl")
				write(t, o, 0, 3)
				text := bytes.TrimSuffix(bytes.Join(lines(t, o.File)[:keep], nil), []byte("\n"))
				check(t, os.WriteFile(o.File, text, 0o600))
				var before Verifier
				if err := verify(t, o.File, &before); err != nil || len(before.Remarks) != 1 || int(before.Last) < keep {
					t.Errorf("before the next writer: %v, remarks %v, %d records", err, before.Remarks, before.Last)
				}
				write(t, o, 3, 5)
				var v Verifier
				if err := verify(t, o.File, &v); err != nil || len(v.Remarks) > 0 || int(v.Last) < keep+2 {
					t.Errorf("%v, remarks %v, %d records", err, v.Remarks, v.Last)
				}
			})
		}
	}
}

// An incomplete line is recorded in the file that it is in, even if the file is full.
func TestIncompleteLineInAFullFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := Options{File: path, MaxSize: 600}
	write(t, o, 0, 3)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	if _, err := f.WriteString(`{"seq":5,"prev":"sha256:`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	write(t, o, 3, 5)
	var v Verifier
	if err := verify(t, path, &v); err != nil || len(v.Remarks) != 1 {
		t.Errorf("%v, remarks %v", err, v.Remarks)
	}
	if names, _ := rotatedFiles(path); len(names) == 0 {
		t.Error("the file was not full")
	}
}

// A file that another log has open is renamed, also on Windows.
func TestRotationOfASharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	o := Options{File: path, MaxSize: 600}
	one, two := New(o), New(o)
	for i := range 20 {
		check(t, one.Commit(body(i)).Err())
		check(t, two.Commit(body(i)).Err())
	}
	check(t, one.Close(time.Minute))
	check(t, two.Close(time.Minute))
	names, err := rotatedFiles(path)
	check(t, err)
	for _, name := range append(names, path) {
		if size := fileSize(t, name); size > o.MaxSize {
			t.Errorf("%s has %d bytes", name, size)
		}
	}
	var v Verifier
	if err := verify(t, path, &v); err != nil || v.Records < 40 {
		t.Errorf("%v: %d records", err, v.Records)
	}
}

// A file that cannot be renamed grows, and the log says so once.
func TestRotationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for seq := range uint64(100) {
		check(t, os.Mkdir(rotatedName(path, seq), 0o700))
	}
	var log bytes.Buffer
	l := New(Options{File: path, MaxSize: 600, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 50 {
		check(t, l.Commit(body(i)).Err())
		if i == 1 && log.Len() > 0 {
			t.Errorf("a file of %d bytes is reported: %s", fileSize(t, path), &log)
		}
	}
	check(t, l.Close(time.Second))
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || strings.Count(got, "\n") != 1 || !strings.Contains(got, "already exists") {
		t.Errorf("the log has %s", got)
	}
	if size := fileSize(t, path); size < 5000 {
		t.Errorf("%d bytes", size)
	}
}

// A rename that failed is tried again when the file has grown by a quarter, and reported when the file is
// twice as large as it may be.
func TestRotationFailsForAWhile(t *testing.T) {
	const maxSize = 1000
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for seq := range uint64(24) {
		check(t, os.Mkdir(rotatedName(path, seq), 0o700))
	}
	w := newFile(path, maxSize, &disk{room: 1 << 20})
	defer func() { w.close(); w.lock.close() }() // Windows does not remove an open file
	reported := false
	for i := range 40 {
		if _, err := w.append(queueOf(body(i))); err != nil {
			t.Fatal(err)
		}
		if len(w.warnings) > 0 && w.size < 2*maxSize {
			t.Fatalf("%d bytes are reported", w.size)
		}
		reported = reported || len(w.warnings) > 0
		w.warnings = nil
	}
	names, err := rotatedFiles(path)
	check(t, err)
	names = slices.DeleteFunc(names, func(name string) bool { return fileSize(t, name) < maxSize/2 || isDir(t, name) })
	if !reported || len(names) < 2 || fileSize(t, names[0]) > 3*maxSize || fileSize(t, names[1]) > maxSize || fileSize(t, path) > maxSize {
		t.Errorf("reported: %v; the file of %d bytes follows %v", reported, fileSize(t, path), names)
	}
}

func isDir(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	return info.IsDir()
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	return info.Size()
}

// hide renames a file until the test ends.
func hide(t *testing.T, name string) {
	t.Helper()
	check(t, os.Rename(name, name+".hidden"))
	t.Cleanup(func() { os.Rename(name+".hidden", name) })
}

func wantFault(t *testing.T, path string, v *Verifier, file string, line int) {
	t.Helper()
	var fault *Fault
	if err := verify(t, path, v); !errors.As(err, &fault) || fault.File != file || fault.Line != line {
		t.Errorf("got %v, want a fault in %s:%d", err, file, line)
	}
}

// Changes of the file while it is being written are found and logged.
func TestFileIsTamperedWithWhileWritten(t *testing.T) {
	tests := []struct {
		name   string
		do     func(path string) error
		want   string // in the fault; "" for none
		logged string // "" for nothing
	}{
		{"nothing", func(string) error { return nil }, "", ""},
		{"removed", os.Remove, "in a file that is gone", "the file that was written before is gone"},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }, "in a file that is gone", "the file that was written before is gone"},
		{"cut within a line", func(path string) error { return os.Truncate(path, 300) }, "records 3 to 4 are missing", "the file was cut"},
		{"replaced by its beginning", replaceByBeginning, "record 4 is missing", "the file was replaced by one that ends earlier"},
		{"renamed", func(path string) error { return os.Rename(path, rotatedName(path, 4)) }, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			var log bytes.Buffer
			l := New(Options{File: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for i := range 3 {
				<-l.Commit(body(i)).Done()
			}
			check(t, test.do(path))
			for i := range 2 {
				check(t, l.Commit(body(3+i)).Err())
			}
			check(t, l.Close(time.Second))
			err := verify(t, path, &Verifier{})
			if logged := strings.Count(log.String(), "attache audit verify"); logged != min(1, len(test.logged)) {
				t.Errorf("advice is logged %d times:\n%s", logged, log.String())
			}
			if text := bytes.Join(lines(t, path), nil); test.logged != "" && !bytes.Contains(text, []byte(`"why":"`+test.logged)) {
				t.Errorf("no record reports %q:\n%s", test.logged, text)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := log.String(); (got == "") != (test.logged == "") || !strings.Contains(got, test.logged) {
				t.Errorf("logged %q, want %q", got, test.logged)
			}
		})
	}
}

// replaceByBeginning replaces the log by a new file without its last line, as editors do.
func replaceByBeginning(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end := bytes.LastIndexByte(text[:len(text)-1], '\n')
	if err := os.WriteFile(path+".new", text[:end+1], 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Several processes write one file, and one of them is killed while it writes.
func TestProcessesShareAFile(t *testing.T) {
	if path := os.Getenv("CHAIN_TEST_FILE"); path != "" {
		writeAsProcess(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all []*exec.Cmd
	start := func(role string) (*exec.Cmd, io.Reader) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcessesShareAFile$")
		cmd.Env = append(os.Environ(), "CHAIN_TEST_FILE="+path, "CHAIN_TEST_ROLE="+role)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		check(t, err)
		return cmd, out
	}
	victim, out := start("victim")
	for range 4 {
		cmd, _ := start("")
		all = append(all, cmd)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // the victim is writing
		t.Fatal(err)
	}
	victim.Process.Kill()
	victim.Wait()
	for _, cmd := range all {
		check(t, cmd.Wait())
	}
	names, _ := rotatedFiles(path)
	var v Verifier
	check(t, verify(t, path, &v))
	if want := 4*300 + len(names) + 1; v.Records < want || len(names) < 3 {
		t.Errorf("%d records in %d files, want %d and those of the killed process", v.Records, len(names)+1, want)
	}
}

// writeAsProcess writes as one of the processes. The victim writes until it is killed.
func writeAsProcess(t *testing.T, path string) {
	l := New(Options{File: path, MaxSize: 20_000, Linger: time.Microsecond})
	victim := os.Getenv("CHAIN_TEST_ROLE") == "victim"
	for i := 0; victim || i < 300; i++ {
		if i == 50 {
			fmt.Println("writing")
		}
		<-l.Commit(body(i)).Done()
	}
	check(t, l.Close(10*time.Second))
}

// disk simulates a disk with limited room.
type disk struct {
	mu   sync.Mutex
	room int
}

func (d *disk) set(room int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = room
}

func (d *disk) write(f *os.File, b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := min(len(b), d.room); n < len(b) {
		f.Write(b[:n])
		return n, syscall.ENOSPC
	}
	d.room -= len(b)
	return f.Write(b)
}

// A repaired record that lacks only its newline is complete too.
func TestRepairWithoutNewline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, edit := range []func([]byte) []byte{
		func(text []byte) []byte { return append(text, headSeq...) },
		func(text []byte) []byte {
			note := bytes.Index(text, []byte(kindRepaired))
			return text[:note+bytes.IndexByte(text[note:], '\n')]
		},
		bytes.Clone,
	} {
		write(t, Options{File: path}, 0, 2)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, edit(text), 0o600)
		}
		check(t, err)
	}
	if err := verify(t, path, &Verifier{}); err != nil {
		t.Errorf("%v in\n%s", err, bytes.Join(lines(t, path), nil))
	}
}

// If an incomplete line cannot be removed, for example from an append-only file, the lines
// before it are not written again.
func TestFullDiskKeepsWholeLines(t *testing.T) {
	line := len((&tip{seq: 2}).next(nil, body(1)))
	for _, test := range []struct {
		name  string
		room  int // after the first record
		whole int
	}{
		{"within the first line", 10, 0},
		{"a line lacks its newline", line - 1, 1},
		{"after a line", line, 1},
		{"within the second line", line + 10, 1},
		{"within the third line", 2*line + 10, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			d := &disk{room: 1 << 20}
			w := newFile(path, 0, d)
			defer func() { w.close(); w.lock.close() }()
			w.write = func(f *os.File, b []byte) (int, error) {
				n, err := d.write(f, b)
				if err != nil {
					f.Close() // so that it cannot be truncated
				}
				return n, err
			}
			if _, err := w.append(queueOf(body(0))); err != nil {
				t.Fatal(err)
			}
			d.set(test.room)
			bodies := [][]byte{body(1), body(2), body(3)}
			n, err := w.append(queueOf(bodies...))
			if n != test.whole || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%d records are in the file, and %v; want %d", n, err, test.whole)
			}
			d.set(1 << 20)
			if _, err := w.append(queueOf(bodies[n:]...)); err != nil {
				t.Fatal(err)
			}
			if err := verify(t, path, &Verifier{}); err != nil {
				t.Error(err)
			}
			text := string(bytes.Join(lines(t, path), nil))
			for i := range 4 {
				if n := strings.Count(text, fmt.Sprintf(`"n":%d}`, i)); n != 1 {
					t.Errorf("record %d is in the file %d times", i, n)
				}
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := New(Options{File: path, Queue: 200, Log: slog.New(slog.NewTextHandler(&log, nil))})
		d := &disk{room: 500}
		l.file.write = d.write
		if r := l.Commit(body(0)); true {
			if <-r.Done(); r.Err() != nil {
				t.Fatal(r.Err())
			}
		}
		d.set(10)
		r := l.Commit(body(1))
		if <-r.Done(); !errors.Is(r.Err(), ErrLost) || !errors.Is(r.Err(), syscall.ENOSPC) {
			t.Errorf("a record on a full disk: %v", r.Err())
		}
		for i := range 20 { // the queue has room for 9 of them
			l.Append(body(100 + i))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
		var v Verifier
		if err := verify(t, path, &v); err != nil || len(v.Remarks) > 0 {
			t.Errorf("a full disk left: %v, remarks %v", err, v.Remarks)
		}
		d.set(1 << 20)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		check(t, l.Commit(body(2)).Err())
		synctest.Wait()
		if strings.Count(log.String(), "written again") != 1 {
			t.Errorf("the log does not report, once, that the file is written again:\n%s", log.String())
		}
		if err := l.Close(time.Second); err == nil || !strings.Contains(err.Error(), "12 audit records are not in") {
			t.Errorf("at the end: %v", err)
		}
	})
	var v Verifier
	check(t, verify(t, path, &v))
	if len(v.Remarks) != 1 || !strings.Contains(v.Remarks[0].What, "12 records are missing") {
		t.Errorf("remarks: %v", v.Remarks)
	}
}

// The same with /dev/full, on systems that have it.
func TestDevFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	l := New(Options{File: filepath.Join(t.TempDir(), "audit.jsonl")})
	l.file.write = func(_ *os.File, b []byte) (int, error) { return full.Write(b) }
	r := l.Commit(body(0))
	if <-r.Done(); !errors.Is(r.Err(), syscall.ENOSPC) {
		t.Errorf("got %v", r.Err())
	}
	l.Append(body(1))
	if err := l.Close(10 * time.Second); !errors.Is(err, ErrLost) {
		t.Errorf("at the end: %v", err)
	}
}

// Records within the linger are written together.
func TestLinger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{File: path})
		writes := 0
		l.file.write = func(f *os.File, b []byte) (int, error) { writes++; return f.Write(b) }
		for i := range 100 {
			l.Append(body(i))
			time.Sleep(time.Millisecond)
		}
		check(t, l.Close(time.Second))
		if writes > 3 {
			t.Errorf("%d writes in 100 ms", writes)
		}
	})
	var v Verifier
	if err := verify(t, path, &v); err != nil || v.Records != 101 {
		t.Errorf("%v, %d records", err, v.Records)
	}
}

func TestNoFileBeforeTheFirstRecord(t *testing.T) {
	dir := t.TempDir()
	l := New(Options{File: filepath.Join(dir, "audit.jsonl")})
	check(t, l.Close(time.Second))
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("a log without records made %v", entries)
	}
}

func TestFilePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing here")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	write(t, Options{File: path, MaxSize: 400}, 0, 5)
	entries, _ := os.ReadDir(dir)
	if len(entries) < 3 {
		t.Fatalf("want the file, a rotated one and the lock: %v", entries)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestKeyIsSharedAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	one, two := New(Options{File: path}).Key(), New(Options{File: path}).Key()
	other := New(Options{File: filepath.Join(t.TempDir(), "audit.jsonl")}).Key()
	if len(one) != keyLen || !bytes.Equal(one, two) || bytes.Equal(one, other) {
		t.Errorf("keys %x, %x and of another log %x", one, two, other)
	}
	write(t, Options{File: path}, 0, 2) // which locks the same file
	if got := New(Options{File: path}).Key(); !bytes.Equal(got, one) {
		t.Error("writing changed the key")
	}
	check(t, os.WriteFile(keyFile(path), fmt.Appendf(nil, "%x\r\n", one), 0o600)) // by an editor
	if got := New(Options{File: path}).Key(); !bytes.Equal(got, one) {
		t.Error("another line end changed the key")
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	log := filepath.Join(dir, "log.jsonl")
	write(t, Options{File: log}, 0, 1)
	check(t, os.Mkdir(keyFile(filepath.Join(dir, "locked.jsonl")), 0o700))
	link := filepath.Join(dir, "link.jsonl")
	if err := os.Symlink(filepath.Join(dir, "unmounted", "audit.jsonl"), link); err != nil {
		t.Skip(err) // Windows without the right
	}
	tests := []struct{ path, want string }{
		{filepath.Join(dir, "new.jsonl"), ""},
		{log, ""},
		{file("empty.jsonl", ""), ""},
		{file("incomplete.jsonl", `{"seq":1,"pre`), ""},
		{filepath.Join(dir, "no", "audit.jsonl"), "there is no directory"},
		{dir, "is not a regular file"},
		{file("notes.txt", "buy milk\n"), "it is not an audit log"},
		{filepath.Join(log, "audit.jsonl"), "is not a directory"},
		{filepath.Join(dir, "locked.jsonl"), "locked.jsonl.key is not a regular file"},
		{link, "link.jsonl is a link to a file that does not exist"},
	}
	for _, test := range tests {
		err := Check(test.path)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.path, err, test.want)
		}
	}
	// A file that is not a log is never written.
	notes := filepath.Join(dir, "notes.txt")
	l := New(Options{File: notes})
	r := l.Commit(body(0))
	if <-r.Done(); !errors.Is(r.Err(), ErrNotALog) {
		t.Errorf("got %v", r.Err())
	}
	l.Close(time.Second)
	if b, _ := os.ReadFile(notes); string(b) != "buy milk\n" {
		t.Errorf("the notes now say %q", b)
	}
}

// The end of a file is found however long its last line is, and a short line is found with
// a short read.
func TestReadEnd(t *testing.T) {
	for _, n := range []int{10, firstTail - 200, firstTail, 3 * firstTail, 900_000} {
		for _, partial := range []string{"", `{"seq":3`, strings.Repeat("x", 2*firstTail)} {
			var want tip
			file := want.next(nil, []byte(`{"kind":"begin","version":1}`))
			file = want.next(file, fmt.Appendf(nil, `{"x":"%s"}`, strings.Repeat("x", n)))
			r := &countingReader{bytes.NewReader(append(file, partial...)), 0}
			e, err := readEnd(r, int64(r.Len()))
			if err != nil || e.tip != want || (e.partial != nil) != (partial != "") {
				t.Errorf("a line of %d bytes, %d of an incomplete one: %v, %+v", n, len(partial), err, e)
			}
			if n == 10 && partial == "" && r.read > firstTail {
				t.Errorf("%d bytes were read", r.read)
			}
		}
	}
}

type countingReader struct {
	*bytes.Reader
	read int
}

func (r *countingReader) ReadAt(b []byte, at int64) (int, error) {
	r.read += len(b)
	return r.Reader.ReadAt(b, at)
}

// A line is found however far it is from the end of its file.
func TestHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var heads []Head
	log := New(Options{File: path, Head: func(h Head) { heads = append(heads, h) }})
	for i := range 8 {
		<-log.Commit(fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, i, strings.Repeat("x", 900_000))).Done()
	}
	check(t, log.Close(time.Minute))
	s, err := Open(path)
	check(t, err)
	defer s.Close()
	for _, h := range heads {
		other := h
		other.Digest[0]++
		for h, want := range map[Head]bool{h: true, other: false} {
			if got, err := s.Has(h); got != want || err != nil {
				t.Errorf("record %d: %v, %v", h.Seq, got, err)
			}
		}
	}
}

// A file whose first line has no id, as older versions wrote it, can be continued and verified.
func TestBeginWithoutID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var first tip
	check(t, os.WriteFile(path, first.next(nil, []byte(`{"time":"2026-11-21T14:38:17.195Z","kind":"begin","version":1}`)), 0o600))
	write(t, Options{File: path}, 1, 2)
	var v Verifier
	if err := verify(t, path, &v); err != nil || v.Last != 2 {
		t.Errorf("record %d, %v", v.Last, err)
	}
}

// FuzzVerify verifies any bytes, and a chain of records that is made of them.
func FuzzVerify(f *testing.F) {
	var t tip
	whole := t.next(nil, []byte(`{"kind":"begin","version":1}`))
	whole = t.next(whole, body(1))
	f.Add(whole)
	f.Add(append(whole, `{"seq":3,"pr`...))
	f.Add(bytes.TrimSuffix(whole, []byte("\n")))
	f.Add([]byte("\n\n{}\n"))
	f.Add([]byte(`{"seq":1,"prev":"sha256:` + strings.Repeat("0", 64) + "\",}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<16 { // a line is bounded
			checkChanged(t, b)
		}
		var v Verifier
		err := v.File("f", bytes.NewReader(b))
		if err == nil {
			err = v.Close()
		}
		var fault *Fault
		if err != nil && !errors.As(err, &fault) {
			t.Fatalf("no fault: %v", err)
		}
		if fault != nil && (fault.Line < 1 || fault.Line > bytes.Count(b, []byte("\n"))+1) {
			t.Fatalf("a fault in line %d of %q", fault.Line, b)
		}
		e, endErr := readEnd(bytes.NewReader(b), int64(len(b)))
		if err != nil || v.Records == 0 || len(b) > maxTail {
			return
		}
		// An unbroken chain can be continued, and readEnd finds the same end as the verifier.
		if endErr != nil || e.tip.seq != v.Last || e.tip.seq > 0 && e.tip.digest != v.Digest {
			t.Fatalf("%q ends in %v (%v), and is verified to %d %v", b, e.tip, endErr, v.Last, v.Digest)
		}
	})
}

// checkChanged makes a chain of records that have the lines of b, and changes one byte of it. The digests decide
// which byte, because the fuzzer cannot make them.
func checkChanged(t *testing.T, b []byte) {
	t.Helper()
	var end tip
	whole := end.next(nil, note{Kind: kindBegin, Version: Version}.body())
	for _, text := range bytes.SplitN(b, []byte("\n"), 4) {
		record, err := json.Marshal(map[string]string{"kind": "call", "x": string(text)})
		check(t, err)
		whole = end.next(whole, record)
	}
	verified := func() error {
		v := Verifier{Expect: end.digest}
		if err := v.File("f", bytes.NewReader(whole)); err != nil {
			return err
		}
		return v.Close()
	}
	if err := verified(); err != nil {
		t.Fatalf("%q: %v", whole, err)
	}
	at := int(binary.LittleEndian.Uint32(end.digest[:])) % len(whole)
	whole[at] ^= max(1, end.digest[4])
	if verified() == nil {
		t.Fatalf("%q was changed at %d, and is verified", whole, at)
	}
}

func BenchmarkAppend(b *testing.B) {
	l := New(Options{File: filepath.Join(b.TempDir(), "audit.jsonl")})
	record := append(append([]byte(`{"kind":"call","x":"`), bytes.Repeat([]byte("x"), 500)...), `"}`...)
	b.ReportAllocs()
	for b.Loop() {
		l.Append(record)
		if l.bytes > 8<<20 {
			b.StopTimer()
			<-l.Commit(record).Done()
			b.StartTimer()
		}
	}
	l.Close(time.Minute)
}

func BenchmarkCommit(b *testing.B) {
	l := New(Options{File: filepath.Join(b.TempDir(), "audit.jsonl")})
	record := append(append([]byte(`{"kind":"call","x":"`), bytes.Repeat([]byte("x"), 500)...), `"}`...)
	for b.Loop() {
		<-l.Commit(record).Done()
	}
	l.Close(time.Minute)
}
