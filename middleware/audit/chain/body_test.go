package chain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A record that is not a JSON object is refused. An empty one ended the program; any other would
// have broken the chain, although Commit reported that it was written.
func TestRecordsThatAreNoObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := New(Options{File: path})
	bad := []string{"", "{}", "{ }", "text", "[1]", `{"n":1`, "{\"n\":\n1}"}
	for _, text := range bad {
		if err := l.Commit([]byte(text)).Err(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "not a JSON object") {
			t.Errorf("%q: %v", text, err)
		}
	}
	check(t, l.Commit(body(1)).Err())
	if err := l.Close(time.Second); !errors.Is(err, ErrLost) {
		t.Errorf("Close: %v, with lost records", err)
	}
	var v Verifier
	text, err := os.ReadFile(path)
	check(t, errors.Join(err, v.File(path, strings.NewReader(string(text))), v.Close()))
}

// After Close, the error of a record does not blame the disk.
func TestRecordAfterClose(t *testing.T) {
	l := New(Options{File: filepath.Join(t.TempDir(), "audit.jsonl")})
	check(t, l.Close(time.Second))
	if err := l.Commit(body(1)).Err(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}
