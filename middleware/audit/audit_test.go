package audit_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

var update = flag.Bool("update", false, "write the records in testdata")

var check = testkit.Check

// newLog returns a log in a temporary directory, with a known key.
func newLog(t *testing.T, log *slog.Logger) (*chain.Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	check(t, os.WriteFile(path+".key", []byte(strings.Repeat("0", 64)+"\n"), 0o600))
	return chain.New(chain.Options{File: path, Log: log}), path
}

// auditor is an audit with one connection.
type auditor struct {
	*audit.Conn
	shared *audit.Shared
}

// Close ends the connection, and then the audit.
func (a auditor) Close(grace time.Duration) error {
	a.Conn.Close()
	return a.shared.Close(grace)
}

// everything returns options that record the arguments in full.
func everything(log *chain.Log) audit.Options {
	return audit.Options{Log: log, Server: "files", Arguments: audit.Full}
}

// newAudit returns an audit with one known secret.
func newAudit(t testing.TB, o audit.Options) auditor {
	t.Helper()
	shared := audit.Compile(o)
	secrets := record.Secrets{Values: []string{"known-secret"}}
	return auditor{shared: shared, Conn: shared.Connect(audit.ConnOptions{
		Redact: record.NewScrubber(secrets).Line,
		Scrub:  record.NewKnownScrubber(secrets).Line,
	})}
}

// inside stands for the inner layers: it sets the context, and adds the notes that the name
// of the tool selects.
func inside() middleware.Layer {
	view := &sessionstate.Context{
		Session:   sessionstate.Fact{Value: "s1", Source: sessionstate.Operator, From: "--session"},
		Workspace: sessionstate.Fact{Value: "/src/shop", Source: sessionstate.RequestMeta},
		Principal: &sessionstate.Principal{KeyID: "k1", User: "ada", Tenant: "acme"},
	}
	return middleware.Layer{Name: "inside", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			call := middleware.CallFrom(ctx)
			if m.From == wire.Client {
				call.SetValue(sessionstate.ContextKey{}, view)
			}
			switch m.Name().View() {
			case "noted":
				call.Note(middleware.Note{Layer: "access", Rule: "access.rules[0]", Act: middleware.Allowed, Why: "it allows the call"})
				call.Note(middleware.Note{Layer: "access", Rule: "access.rules[1]", Act: middleware.Skipped, Why: "not asked for"})
				call.Note(middleware.Note{Layer: "rewrite", Rule: "rewrite[0]", Act: middleware.Edited, Path: []string{"params", "name"}, Before: []byte(`"noted"`), After: []byte(`"original"`)})
				call.Note(middleware.Note{Layer: "arguments", Rule: "arguments[0]", Act: middleware.Edited, Path: []string{"params", "arguments", "a/b"}, After: []byte(`"acme"`), Source: "principal.tenant from key k1"})
				call.Note(middleware.Note{Layer: "rewrite", Rule: "rewrite[1]", Act: middleware.Edited, Path: []string{"params", "arguments", "token"}, After: []byte(`"sk-live-1"`), Source: `"sk-live-1"`})
				call.OnReply(func(context.Context, *wire.Message) error {
					call.Note(middleware.Note{Layer: "briefing", Rule: "policy", Act: middleware.Edited, Path: []string{"result", "content"}, After: []byte(`{}`)})
					return nil
				})
			case "busy":
				for range 130 {
					call.Note(middleware.Note{Layer: "access", Rule: "access.rules[0]", Act: middleware.Allowed})
				}
			case "dry":
				call.Note(middleware.Note{Layer: "access", Rule: "access.rules[0]", Act: middleware.Refused, DryRun: true})
			case "refused":
				call.Note(middleware.Note{Layer: "access", Rule: "access.rules[2]", Act: middleware.Refused, Why: "it denies the call"})
				return call.Answer(ctx, wire.ToolErrorReply(m.ID(), "Permission denied", false))
			}
			return next(ctx, m)
		}
	}}
}

// varying matches the parts of a line that differ from run to run.
var varying = regexp.MustCompile(`"seq":\d+,"prev":"[^"]*",|"run":"[^"]*",`)

// records verifies a file and returns its records without the varying parts.
func records(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return ""
	}
	var v chain.Verifier
	check(t, v.File(path, bytes.NewReader(text)))
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"kind":"begin"`) {
			out.WriteString(varying.ReplaceAllString(line, ""))
		}
	}
	return out.String()
}

func TestRecords(t *testing.T) {
	const file = "testdata/calls.txt"
	scripts, err := txtar.ParseFile(file)
	check(t, err)
	for i, s := range scripts.Files {
		t.Run(s.Name, func(t *testing.T) {
			var text, want string
			for line := range strings.Lines(string(s.Data)) {
				if strings.HasPrefix(line, "{") {
					want += line
				} else if line != "\n" {
					text += line
				}
			}
			got := play(t, text)
			scripts.Files[i].Data = []byte(text + got + "\n")
			if got != want && !*update {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	if *update {
		out := bytes.TrimSuffix(txtar.Format(scripts), []byte("\n"))
		check(t, os.WriteFile(file, out, 0o600))
	}
}

// play plays a script with the audit and returns the records.
func play(t *testing.T, text string) string {
	t.Helper()
	var got string
	synctest.Test(t, func(t *testing.T) {
		log, path := newLog(t, nil)
		a := newAudit(t, everything(log))
		s := proxytest.Setup{Options: proxy.Options{
			Layers: []middleware.Layer{trace.New(trace.Options{}).Layer(), a.Layer(), inside()},
			Aside:  func(f proxy.Aside) { a.Aside(f.Message, f.Why, f.Code, nil) },
		}}.Start(t)
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			switch synctest.Wait(); line[0] {
			case '>':
				s.Client.Send(line[2:])
			case '<':
				s.Server.Send(line[2:])
			default:
				time.Sleep(time.Millisecond)
			}
		}
		synctest.Wait()
		s.Client.Close()
		synctest.Wait() // so that the client has left before the server ends
		s.Server.Close()
		s.Exit(nil)
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		if err := a.Close(time.Second); err != nil {
			t.Error(err)
		}
		got = records(t, path)
	})
	return got
}

const (
	echo   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`
	answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
)

// Each mode records the arguments in its own way.
func TestArguments(t *testing.T) {
	const arguments = `{"text":"hi","password":"hunter22","note":"use known-secret"}`
	longest := `{"text":"` + strings.Repeat("x", 64<<10-len(`{"text":""}`)) + `"}`
	long := strings.Replace(longest, "x", "xx", 1)
	nested := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	const surrogates = `{"pair":"\ud83d\uDE00","escaped":"\\ud83d [[[ \" {{{","n":[[1],[2]]}`
	digest := regexp.MustCompile(`"arguments_digest":"hmac-sha256:[0-9a-f]{64}"`)
	tests := []struct {
		mode      audit.Arguments
		arguments string
		want      string // "" for a digest
	}{
		{audit.Digest, arguments, ""},
		{"", arguments, ""},
		{audit.Redacted, arguments, `"arguments":{"text":"hi","password":"scrubbed","note":"use scrubbed-secret-1"}`},
		{audit.Full, arguments, `"arguments":{"text":"hi","password":"hunter22","note":"use scrubbed-secret-1"}`},
		{audit.Redacted, long, ""},
		{audit.Full, long, ""},
		{audit.Full, longest, `"arguments":` + longest},
		{audit.Full, surrogates, `"arguments":` + surrogates},
		{audit.Full, `{"cut":"smile \ud83d"}`, ""},
		{audit.Full, `{"cut":"\ud83d\ud83d\ude00"}`, ""},
		{audit.Full, `{"\uDE00 cut":1}`, ""},
		{audit.Redacted, `{"cut":"smile \uD83D\n"}`, ""},
		{audit.Full, nested(128), `"arguments":` + nested(128)},
		{audit.Full, nested(129), ""},
	}
	for _, test := range tests {
		log, path := newLog(t, nil)
		a := newAudit(t, audit.Options{Log: log, Arguments: test.mode})
		s := proxytest.Start(t, a.Layer(), inside())
		s.Client.Send(strings.Replace(echo, `{"a":1}`, test.arguments, 1))
		s.Server.Next()
		s.Server.Send(answer)
		s.Client.Expect(answer)
		check(t, a.Close(time.Second))
		got := records(t, path)
		if test.want == "" && (!digest.MatchString(got) || strings.Contains(got, `"arguments":`)) || !strings.Contains(got, test.want) {
			t.Errorf("%q: got %.300s, want %q", test.mode, got, test.want)
		}
		if strings.Contains(got, "known-secret") {
			t.Errorf("%q: a known secret is recorded: %s", test.mode, got)
		}
	}
}

// A record has 128 notes at most, and the number of those that it leaves out.
func TestNotesAreBounded(t *testing.T) {
	got := play(t, strings.ReplaceAll("> "+echo+"\n< "+answer+"\n", "echo", "busy"))
	if n := strings.Count(got, `"rule":`); n != 128 || !strings.Contains(got, `"notes_left_out":2,`) {
		t.Errorf("%d notes in %s", n, got)
	}
}

// The arguments in clear of all calls in flight are bounded.
func TestArgumentsInFlightAreBounded(t *testing.T) {
	const calls, size = 400, 60_000 // 24 MB, of which there is room for 16 MiB
	log, path := newLog(t, nil)
	a := newAudit(t, everything(log))
	s := proxytest.Start(t, a.Layer())
	line := strings.Replace(echo, `{"a":1}`, `{"a":"`+strings.Repeat("x", size)+`"}`, 1)
	written := func(n int) bool {
		data, _ := os.ReadFile(path) // the first record makes the file
		return bytes.Count(data, []byte(`"kind":"call"`)) == n
	}
	for round := range 2 { // the second round reserves the same memory again
		for range calls {
			s.Client.Send(line)
			s.Server.Next()
		}
		for i := range calls {
			s.Server.Send(answer)
			s.Client.Expect(answer)
			// On a busy machine the log's queue could become full, and lose records.
			for n := round*calls + i + 1; n%100 == 0 && !written(n); {
				time.Sleep(time.Millisecond)
			}
		}
	}
	check(t, a.Close(10*time.Second))
	data, err := os.ReadFile(path)
	check(t, err)
	clear, digests := bytes.Count(data, []byte(`"arguments":`)), bytes.Count(data, []byte(`"arguments_digest":`))
	if clear+digests != 2*calls || clear != 2*(16<<20/(size+8)) {
		t.Errorf("%d in clear and %d digests of twice %d", clear, digests, calls)
	}
}

// A reply that was too large to hold is recorded as such.
func TestTooLarge(t *testing.T) {
	log, path := newLog(t, nil)
	a := newAudit(t, everything(log))
	s := proxytest.Setup{Options: proxy.Options{Layers: []middleware.Layer{a.Layer()}, Hold: 64 << 10}}.Start(t)
	s.Client.Send(echo)
	s.Server.Next()
	long := strings.Replace(answer, "[]", `["`+strings.Repeat("x", 100_000)+`"]`, 1)
	s.Server.Send(long)
	s.Client.Expect(long)
	s.Client.Close()
	s.Server.Close()
	s.Exit(nil)
	s.Wait()
	check(t, a.Close(time.Second))
	if got := records(t, path); !strings.Contains(got, `"result":"too_large"`) {
		t.Errorf("got %s", got)
	}
}

// required returns a session whose calls must be recorded.
func required(t *testing.T) (*proxytest.Session, auditor, string) {
	t.Helper()
	log, path := newLog(t, slog.New(slog.DiscardHandler))
	a := newAudit(t, audit.Options{Log: log, Server: "files", Arguments: audit.Full, Required: true})
	return proxytest.Setup{Options: proxy.Options{Layers: []middleware.Layer{a.Layer(), inside(), a.Gate()}}}.Start(t), a, path
}

// With a required audit, a call is in the file before the server receives it.
func TestRequired(t *testing.T) {
	s, a, path := required(t)
	s.Client.Send(echo)
	s.Server.Expect(echo)
	if got := records(t, path); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"kind":"intent"`) || !strings.Contains(got, `"sent_digest":`) {
		t.Errorf("when the server has the call the file has\n%s", got)
	}
	s.Server.Send(answer)
	s.Client.Expect(answer)
	// A notification and the members of a batch cannot be suspended, but are recorded.
	notification := strings.Replace(echo, `"id":1,`, "", 1)
	s.Client.Send(notification)
	s.Server.Expect(notification)
	s.Client.Send("[" + echo + "]")
	s.Server.Expect("[" + echo + "]")
	// A call that a layer refuses is not sent, so it does not wait for a record.
	s.Client.Send(strings.Replace(echo, "echo", "refused", 1))
	s.Client.Next()
	check(t, a.Close(time.Second))
	got := records(t, path)
	for want, n := range map[string]int{`"kind":"intent"`: 3, `"kind":"call"`: 4, `"decision":"refused"`: 1} {
		if strings.Count(got, want) != n {
			t.Errorf("want %s %d times in\n%s", want, n, got)
		}
	}
}

// With a required audit, a call that cannot be recorded never reaches the server.
func TestRequiredRefuses(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"a call", echo, `"isError":true`},
		{"in a batch", "[" + echo + "]", `"isError":true`},
		{"a prompt", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}`, `"code":-32603`},
		{"a resource", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///x"}}`, `"code":-32603`},
		{"a notification", strings.Replace(echo, `"id":1,`, "", 1), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, a, path := required(t)
			check(t, os.RemoveAll(filepath.Dir(path)))
			s.Client.Send(test.line)
			if test.want != "" {
				if got := string(s.Client.Next()); !strings.Contains(got, test.want) || !strings.Contains(got, "has to be recorded") {
					t.Errorf("the client got %s, want %s", got, test.want)
				}
			}
			const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
			s.Client.Send(ping)
			s.Server.Expect(ping) // and nothing before it
			if err := a.Close(time.Second); err == nil {
				t.Error("lost records are not reported")
			}
		})
	}
}

// Without Required, calls go on, and their records are written when the file can be written
// again.
func TestNotRequiredGoesOn(t *testing.T) {
	log, path := newLog(t, nil)
	a := newAudit(t, everything(log))
	s := proxytest.Start(t, a.Layer(), inside())
	check(t, os.RemoveAll(filepath.Dir(path)))
	s.Client.Send(echo)
	s.Server.Expect(echo)
	s.Server.Send(answer)
	s.Client.Expect(answer)
	check(t, os.Mkdir(filepath.Dir(path), 0o700))
	check(t, a.Close(5*time.Second))
	if got := records(t, path); !strings.Contains(got, `"result":"ok"`) {
		t.Errorf("got %s", got)
	}
}

func BenchmarkCall(b *testing.B) {
	path := filepath.Join(b.TempDir(), "audit.jsonl")
	a := newAudit(b, audit.Options{Log: chain.New(chain.Options{File: path})})
	defer a.Close(time.Minute)
	relay := noRelay{}
	last := func(ctx context.Context, m *wire.Message) error {
		reply := wire.NewMessage(wire.Server, []byte(answer))
		for _, h := range relayed.From(ctx).Hooks() {
			if err := h(ctx, reply); err != nil {
				return err
			}
		}
		return nil
	}
	chain := middleware.Chain(last, a.Layer(), inside())
	var call relayed.Call
	ctx := &relayed.Context{Context: context.Background(), Call: &call}
	var scanner wire.Scanner
	var m wire.Message
	line := []byte(echo + "\n")
	b.ReportAllocs()
	for b.Loop() {
		m.Reset(wire.Client, line)
		scanner.Look(&m)
		call.Reset(relay, true)
		check(b, chain(ctx, &m))
	}
}

type noRelay struct{ relayed.Relay }

func (noRelay) Answer(context.Context, *wire.Message) error { return nil }
