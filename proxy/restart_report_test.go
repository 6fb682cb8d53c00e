package proxy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// What a restart reports: to Watch how the last server ended and which calls it did not read, and when the
// next one started; to Restarted and the log the calls that were lost and the time without a server; and to
// the model, with the first result of a tool that need not stay quiet, that the server has no memory.
func TestRestartReports(t *testing.T) {
	const (
		hello   = `{"jsonrpc":"2.0","id":%s,"method":"initialize","params":{}}`
		welcome = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`
		ready   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		call    = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`
		result  = `{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`
		notice  = "what it kept in memory"
	)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var events []string
		quiet := true
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, fmt.Sprintf(format, args...))
		}
		began := time.Now().UTC().Truncate(time.Second)
		s := proxytest.Setup{Options: proxy.Options{
			IDPrefix: "p-",
			Watch: func(at proxy.Point, line []byte) {
				if at >= proxy.ServerExit {
					note("%v %s", at, line)
				}
			},
			Restart: &proxy.Restart{
				Notice: true,
				Quiet:  func() bool { mu.Lock(); defer mu.Unlock(); return quiet },
				Restarted: func(exit string, lost int, down time.Duration) {
					note("restarted after %s, %d lost, down for %v", exit, lost, down)
				},
			},
		}}.Start(t)
		pass := func(from, to *proxytest.Peer, line string) {
			from.Send(line)
			to.Expect(line)
		}
		pass(s.Client, s.Server, fmt.Sprintf(hello, "0"))
		pass(s.Server, s.Client, fmt.Sprintf(welcome, "0"))
		pass(s.Client, s.Server, ready)
		ask := func(id int, want bool) {
			t.Helper()
			pass(s.Client, s.Server, fmt.Sprintf(call, id))
			s.Server.Send(fmt.Sprintf(result, id))
			if got := string(s.Client.Next()); strings.Contains(got, notice) != want {
				t.Errorf("the model reads %s, with a notice: want %v", got, want)
			}
		}
		ask(1, false)
		for run, calls := range [][]int{{10, 11}, {20}} {
			for _, id := range calls {
				pass(s.Client, s.Server, fmt.Sprintf(call, id))
			}
			s.Server.CloseInput()
			s.Client.Send(fmt.Sprintf(call, 90+run))
			synctest.Wait()
			s.Exit(errors.New("exit status 3; no room"))
			for _, id := range calls {
				if got := string(s.Client.Next()); !strings.Contains(got, fmt.Sprintf(`"id":%d,"error"`, id)) {
					t.Errorf("call %d is answered with %s", id, got)
				}
			}
			own := fmt.Sprintf(`"p-%d"`, run+1)
			time.Sleep(time.Second) // the second start is delayed
			s.Server.Expect(fmt.Sprintf(hello, own))
			time.Sleep(time.Second)
			s.Server.Send(fmt.Sprintf(welcome, own))
			s.Server.Expect(ready)
			s.Server.Expect(fmt.Sprintf(call, 90+run))
			pass(s.Server, s.Client, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":"no"}}`, 90+run))
			ask(30+run, false)
			mu.Lock()
			quiet = false
			mu.Unlock()
			ask(40+run, true)
			ask(50+run, false)
			mu.Lock()
			quiet = true
			mu.Unlock()
		}
		log := s.Log()
		if n := strings.Count(log, "the server has ended and is started again"); n != 2 || !strings.Contains(log, "calls_lost=2") || !strings.Contains(log, "calls_lost=1") {
			t.Errorf("the log is\n%s", log)
		}
		started := func(after time.Duration) string {
			return fmt.Sprintf(`server-start {"time":%q}`+"\n", began.Add(after).Format(time.RFC3339))
		}
		want := []string{
			`server-exit {"exit":"exit status 3; no room","session_lost":false,"unsent":[90]}` + "\n", started(0), "restarted after exit status 3, 2 lost, down for 2s",
			`server-exit {"exit":"exit status 3; no room","session_lost":false,"unsent":[91]}` + "\n", started(2 * time.Second), "restarted after exit status 3, 1 lost, down for 2s",
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(events, want) {
			t.Errorf("reported:\n%s\nwant:\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
		}
	})
}

// The result of a call that the client has sent while no server was ready has the notice, too.
func TestRestartNoticeForWaitingCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := proxytest.Setup{Options: proxy.Options{IDPrefix: "p-", Restart: &proxy.Restart{Notice: true}}}.Start(t)
		pass := func(from, to *proxytest.Peer, line string) {
			from.Send(line)
			to.Expect(line)
		}
		handshake := func(hello, welcome string) {
			s.Server.Expect(hello)
			s.Server.Send(welcome)
		}
		const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		s.Client.Send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
		handshake(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		s.Client.Expect(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		pass(s.Client, s.Server, ready)
		s.Exit(errors.New("exit status 3"))
		synctest.Wait()
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`
		s.Client.Send(call)
		synctest.Wait()
		handshake(`{"jsonrpc":"2.0","id":"p-1","method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":"p-1","result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		s.Server.Expect(ready)
		s.Server.Expect(call)
		s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
		if got := string(s.Client.Next()); !strings.Contains(got, "what it kept in memory") {
			t.Errorf("the model reads %s", got)
		}
	})
}
