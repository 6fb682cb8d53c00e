package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/front"
)

// What was saved and not deleted is there in the next process, for some time.
func TestSessionFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve", "sessions")
	now := time.Now()
	open := func(at time.Time) *sessionFile {
		t.Helper()
		f, err := openSessionFile(path, at, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	has := func(f *sessionFile, key string, want bool) {
		t.Helper()
		if s, ok := f.Load(key); ok != want || ok && s.Initialize != "of "+key {
			t.Errorf("%s: %v %t", key, s, ok)
		}
	}
	f := open(now)
	for _, key := range []string{"a", "b", "c"} {
		f.Save(key, front.SavedSession{Initialize: "of " + key, Agreed: "x"})
	}
	f.Delete("b")
	f.Delete("unknown")
	if _, err := openSessionFile(path, now, time.Hour); err != errInUse {
		t.Error("two processes use one file:", err)
	}
	f.close()

	// A process may be killed while it writes.
	half, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(half, `{"key":"d","initi`)
	half.Close()
	f = open(now)
	has(f, "a", true)
	has(f, "b", false)
	has(f, "c", true)
	has(f, "d", false)
	f.Save("a", front.SavedSession{Initialize: "of a"}) // its client came back
	f.close()

	f = open(now.Add(2 * time.Hour))
	has(f, "a", true)
	has(f, "c", false)
	f.close()

	// Sessions that nobody has come back for do not hold for ever in one process either.
	f = open(now.Add(-2 * time.Hour))
	f.saved["e"] = savedLine{Key: "e", SavedSession: front.SavedSession{Initialize: "of e"}, Until: now.Add(-time.Hour)}
	has(f, "e", false)
	f.close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// The file does not grow with the number of sessions there ever were.
func TestSessionFileIsRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions")
	f, err := openSessionFile(path, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	f.Save("kept", front.SavedSession{Initialize: "x"})
	for i := range 2 * maxDead {
		key := fmt.Sprint(i)
		f.Save(key, front.SavedSession{Initialize: "x"})
		f.Delete(key)
	}
	data, err := os.ReadFile(path)
	if n := strings.Count(string(data), "\n"); err != nil || n > maxDead+10 || !strings.Contains(string(data), `"kept"`) {
		t.Errorf("%d lines, %v", n, err)
	}
}

// A directory that cannot be written is no reason not to serve.
func TestSessionsAreNotKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openSessionFile(filepath.Join(file, "sessions"), time.Now(), time.Hour); err == nil {
		t.Error("a file is a directory")
	}
}
