package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/record"
)

// A failingServer is one run of a server. It ends at a call of "die". At a call of "lose" the second
// run acts like a remote server that lost the session before it read the call.
type failingServer struct {
	*mempipe.Server
	run      int // 1 for the first
	returned []byte
}

func (f *failingServer) Returned() []byte { return f.returned }

func (f *failingServer) serve() {
	lines := bufio.NewScanner(f.In)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		result := fmt.Sprintf(`{"content":[{"type":"text","text":"run %d"}]}`, f.run)
		switch {
		case m.ID == nil:
			continue
		case m.Method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`
		case m.Method == "tools/list":
			result = fmt.Sprintf(`{"tools":[{"name":"t%d"}]}`, f.run)
		case m.Method == "prompts/list" && f.run == 3:
			f.Exit(nil)
			return
		case m.Params.Name == "die":
			f.Exit(errors.New(`exit status 3; its last words on stderr: <"boom">`))
			return
		case m.Params.Name == "lose" && f.run == 2:
			f.returned = append(bytes.Clone(lines.Bytes()), '\n')
			f.Exit(sessionLost{errors.New("404 Not Found")})
			return
		}
		fmt.Fprintf(f.Out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
	f.Exit(nil)
}

// awaitChange is a step that waits until the lists of two runs were compared. Otherwise the session
// could end during the comparison, and the recording would contain only a part of it.
const awaitChange = "await change"

// recordSession records a session with servers that fail.
func recordSession(t *testing.T, policy *proxy.Restart, requests ...string) *record.Session {
	t.Helper()
	in, out := mempipe.New(0), mempipe.New(0)
	var file bytes.Buffer
	r := record.NewRecorder(&file, record.Options{IDPrefix: "own-"})
	runs, changed := 0, make(chan struct{}, 1)
	if policy != nil {
		p := *policy
		p.Changed = func(string, string, string) { changed <- struct{}{} }
		policy = &p
	}
	var over sync.WaitGroup
	over.Go(func() {
		_ = proxy.Run(t.Context(), proxy.Options{
			ClientIn: in, ClientOut: out, Restart: policy, IDPrefix: "own-",
			Watch: func(at proxy.Point, line []byte) { r.Watch(at.String(), line) },
			Start: func(context.Context) (proxy.Upstream, error) {
				runs++
				s := &failingServer{Server: mempipe.NewServer(0), run: runs}
				go s.serve()
				return s, nil
			},
		})
	})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	awaitReply(t, out, 0)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, request := range requests {
		if request == awaitChange {
			<-changed
			continue
		}
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", i+1, request)
		awaitReply(t, out, i+1)
	}
	in.CloseWrite()
	over.Wait()
	testkit.Check(t, r.Close())
	s, err := record.Read(&file)
	testkit.Check(t, err)
	return s
}

func awaitReply(t *testing.T, out *mempipe.Pipe, id int) {
	t.Helper()
	for {
		line, err := out.ReadLine(time.Minute)
		if err != nil {
			t.Fatalf("no answer to %d: %v", id, err)
		}
		if bytes.Contains(line, fmt.Appendf(nil, `"id":%d,`, id)) {
			return
		}
	}
}

func toolCall(name string) string {
	return `"method":"tools/call","params":{"name":"` + name + `"}`
}

// The replay ends and restarts the server as in the recording.
func TestServerEnds(t *testing.T) {
	const list, prompts = `"method":"tools/list"`, `"method":"prompts/list"`
	policy := &proxy.Restart{Name: "failing", Notice: true}
	for name, c := range map[string]struct {
		policy   *proxy.Restart
		requests []string
		starts   int
		want     string // part of the recording
	}{
		"crash":        {policy, []string{toolCall("live"), toolCall("die"), toolCall("live")}, 1, "the server failing was restarted at"},
		"other list":   {policy, []string{list, toolCall("die"), toolCall("live"), awaitChange}, 1, "run 2"},
		"lost session": {policy, []string{toolCall("die"), toolCall("lose"), toolCall("live")}, 2, "failing has lost the session"},
		"sent again":   {policy, []string{toolCall("die"), toolCall("lose"), prompts, toolCall("live")}, 3, "run 4"},
		"never":        {nil, []string{toolCall("live"), toolCall("die")}, 0, "the server ended before it answered: exit status 3; its last words"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := recordSession(t, c.policy, c.requests...)
			if n := strings.Count(text(s), `"at":"server-start"`); n != c.starts {
				t.Errorf("%d starts were recorded, want %d", n, c.starts)
			}
			// The replay uses the times of the recording.
			for i, e := range s.Events {
				s.Events[i].Line = backdate(e.Line)
			}
			if !strings.Contains(text(s), c.want) {
				t.Errorf("%q is not in the recording:\n%s", c.want, text(s))
			}
			r, err := Play(t.Context(), s, Options{Proxy: proxy.Options{Restart: c.policy}, Patience: time.Minute})
			testkit.Check(t, err)
			for _, d := range r.Differences {
				t.Error(d)
			}
			if t.Failed() {
				t.Log(text(s))
			}
		})
	}
}

// backdate moves the times in a line of a recording to another hour.
func backdate(line []byte) []byte {
	now := time.Now().UTC()
	for _, at := range []time.Time{now, now.Add(-time.Minute)} {
		line = bytes.ReplaceAll(line, []byte(at.Format("2006-01-02T15:04")), []byte("2020-02-20T11:59"))
		line = bytes.ReplaceAll(line, []byte(at.Format("at 15:04 MST")), []byte("at 11:59 UTC"))
	}
	return line
}
