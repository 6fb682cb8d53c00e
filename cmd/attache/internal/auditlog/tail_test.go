package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// Follow continues after a file is renamed, and shows a line when it is complete.
func TestAuditTailFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := chain.New(chain.Options{File: path, MaxSize: 700})
	n := 0
	write := func(count int) {
		for range count {
			<-log.Commit(fmt.Appendf(nil, `{"kind":"call","tool":"tool-%d"}`, n)).Done()
			n++
		}
	}
	var out bytes.Buffer
	tail := &Tailer{Path: path, Show: NewPrinter(&out, false, time.UTC).Record}
	shown := func(step func() error, want ...string) {
		t.Helper()
		out.Reset()
		testkit.Check(t, step())
		var got []string
		for word := range strings.FieldsSeq(out.String()) {
			if strings.HasPrefix(word, "tool-") {
				got = append(got, word)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("shown: %v, want %v", got, want)
		}
	}
	write(3)
	shown(func() error { return tail.Last(2) }, "tool-1", "tool-2")
	shown(tail.more)
	write(1)
	shown(tail.more, "tool-3")
	write(1) // goes into a new file, because the first one is full
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "audit-*.jsonl")); len(names) != 1 {
		t.Fatalf("files: %v", names)
	}
	shown(tail.more, "tool-4")
	write(10) // several files, as while the reader of the output waits
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "audit-*.jsonl")); len(names) < 3 {
		t.Fatalf("files: %v", names)
	}
	shown(tail.more, "tool-5", "tool-6", "tool-7", "tool-8", "tool-9", "tool-10", "tool-11", "tool-12", "tool-13", "tool-14")
	testkit.Check(t, log.Close(time.Second))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	testkit.Check(t, err)
	defer f.Close()
	for _, part := range []struct{ text, want string }{{`{"kind":"call","tool":"to`, ""}, {"ol-15\"}\n", "tool-15"}} {
		if _, err := f.WriteString(part.text); err != nil {
			t.Fatal(err)
		}
		shown(tail.more, strings.Fields(part.want)...)
	}
}

// logrotate with copytruncate cuts the file, which is then read from its beginning.
func TestAuditTailCutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var got []string
	tail := &Tailer{Path: path, Show: func(line []byte) error { got = append(got, string(line)); return nil }}
	write := func(flag int, text string) {
		f, err := os.OpenFile(path, os.O_WRONLY|flag, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		testkit.Check(t, errors.Join(err, f.Close()))
		testkit.Check(t, tail.more())
	}
	testkit.Check(t, os.WriteFile(path, []byte("one\ntwo\nthr"), 0o600))
	testkit.Check(t, tail.Last(1))
	write(os.O_TRUNC, "four\n")
	write(os.O_APPEND, "five\n")
	write(os.O_TRUNC, "")
	write(os.O_APPEND, "six\n")
	if want := []string{"two\n", "four\n", "five\n", "six\n"}; !slices.Equal(got, want) {
		t.Errorf("shown: %q, want %q", got, want)
	}
}

// Text from messages cannot move the cursor of a terminal.
func TestAuditTailIsPrintable(t *testing.T) {
	var out bytes.Buffer
	p := NewPrinter(&out, true, time.UTC)
	for _, line := range []string{
		`{"kind":"call","tool":"\u001b[2J\r\n\u202eevil","decision":"refused","rules":[{"why":"\u0007"}]}`,
		"\x1b[2J",
	} {
		testkit.Check(t, p.Record([]byte(line)))
	}
	plain := strings.NewReplacer("\x1b[31m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(out.String())
	if strings.ContainsAny(plain, "\x1b\r\a\u202e") || strings.Count(plain, "\n") != 3 {
		t.Errorf("printed %q", out.String())
	}
}

func TestAuditTailRecords(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		// The size of a frame over limits.hold is not known.
		{`{"time":"2026-11-21T14:00:00Z","kind":"aside","server":"git","frame":"request","method":"tools/call","decision":"unjudged","why":"longer than the hold limit"}`,
			"2026-11-21 14:00:00.000  nobody known  git: tools/call  unjudged  longer than the hold limit\n"},
		{`{"time":"2026-11-21T14:00:00Z","kind":"list_changed","server":"git","method":"tools/list","before":"sha256:1","after":"sha256:2"}`,
			"2026-11-21 14:00:00.000  list_changed  git  tools/list\n"},
		{`{"time":"2026-11-21T14:00:00Z","kind":"server_restarted","server":"git","exit":"exit status 3","calls_lost":1}`,
			"2026-11-21 14:00:00.000  server_restarted  git  exit status 3\n"},
		{`{"time":"2026-11-21T14:00:00Z","kind":"agent_started","server":"attache","agent":"reviewer","agent_session":"s2"}`,
			"2026-11-21 14:00:00.000  agent_started  reviewer  s2\n"},
	} {
		var out bytes.Buffer
		if err := NewPrinter(&out, false, time.UTC).Record([]byte(test.line)); err != nil || out.String() != test.want {
			t.Errorf("%s is printed as %q, %v", test.line, out.String(), err)
		}
	}
}

// A JSON line without a kind is not a record, and is not printed with a time of year 1.
func TestAuditTailOtherLine(t *testing.T) {
	for _, line := range []string{`{"level":"info","msg":"hello"}`, `{}`, `null`, `[]`, `3`, `no JSON`} {
		var out bytes.Buffer
		testkit.Check(t, NewPrinter(&out, false, time.UTC).Record([]byte(line)))
		if !strings.HasPrefix(out.String(), "a line that is not a record: ") {
			t.Errorf("%s is printed as %q", line, out.String())
		}
	}
}
