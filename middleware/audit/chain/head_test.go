package chain

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A head has the digest of the first line of its file, and there is none for a write that failed.
func TestHeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	synctest.Test(t, func(t *testing.T) {
		var heads []Head
		l := New(Options{File: path, Head: func(h Head) { heads = append(heads, h) }})
		d := &disk{room: 1 << 20}
		l.file.write = d.write
		want := 0
		for i, room := range []int{1 << 20, 1 << 20, 0, 10, 1 << 20} {
			d.set(room)
			if l.Commit(body(i)).Err() == nil {
				want++
			}
			synctest.Wait()
			if len(heads) != want {
				t.Errorf("%d heads after record %d, want %d", len(heads), i, want)
			}
		}
		_ = l.Close(time.Second)
		all := lines(t, path)
		if last := heads[len(heads)-1]; int(last.Seq) != len(all) || last.Digest != sha256.Sum256(all[len(all)-1]) {
			t.Errorf("the last head is that of line %d", last.Seq)
		}
		for _, h := range heads {
			if h.File != sha256.Sum256(all[0]) {
				t.Errorf("the head of line %d is that of another file", h.Seq)
			}
		}
	})
}

// A file is identified by its first line, if that is complete.
func TestBeginning(t *testing.T) {
	for text, want := range map[string]Digest{
		"": {}, `{"seq":1,`: {}, "\n": sha256.Sum256([]byte("\n")), "{}\n": sha256.Sum256([]byte("{}\n")), "{}\n{}\n": sha256.Sum256([]byte("{}\n")),
	} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		check(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := OpenFiles(path)
		check(t, err)
		if got := s.Files[0].Beginning(); got != want {
			t.Errorf("%q is identified by %v", text, got)
		}
		s.Close()
	}
}

// A snapshot has the files of its moment, also if the last of them is gone, and no line that was written later.
func TestSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without files: %v", err)
	}
	var heads []Head
	o := Options{File: path, MaxSize: 600, Head: func(h Head) { heads = append(heads, h) }}
	write(t, o, 0, 2)
	s, err := Open(path)
	check(t, err)
	defer s.Close()
	write(t, o, 2, 3)
	for i, want := range []bool{true, false} {
		if got, err := s.Has(heads[i]); got != want || err != nil {
			t.Errorf("the snapshot has record %d: %v, %v", heads[i].Seq, got, err)
		}
	}
	write(t, o, 3, 10)
	check(t, os.Remove(keyFile(path))) // as in a copy of the log
	hide(t, path)
	names, err := rotatedFiles(path)
	check(t, err)
	rest, err := Open(path)
	check(t, err)
	defer rest.Close()
	if len(names) == 0 || len(rest.Files) != len(names) {
		t.Errorf("%d files of %q", len(rest.Files), names)
	}
}
