//go:build e2e

//lint:file-ignore SA1019 roots, sampling and logging are deprecated, and still what servers and clients send

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// testTransparentGo is testTransparent with the go-sdk client. For the newest version the client probes with
// server/discover; for older ones it starts with initialize.
func (l *lab) testTransparentGo(t *testing.T) {
	for _, row := range []struct {
		server   server
		versions []string
		steps    func(*goSession)
	}{
		{l.gosdk(), []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}, fixtureSteps},
		{l.dual(), []string{"2026-07-28", "2025-11-25"}, fixtureSteps},
		{l.legacy(), []string{"2026-07-28", "2025-11-25"}, fixtureSteps},
		{l.everything(), []string{"2026-07-28", "2025-06-18"}, everythingSteps},
	} {
		for _, version := range row.versions {
			t.Run(row.server.name+"/"+version, func(t *testing.T) {
				t.Parallel()
				run := func(command, _ []string) []string { return []string{l.driveGo(t, version, command, row.steps)} }
				compareRelayed(t, []string{"steps"}, l.chains(t, row.server.command), run(row.server.command, nil), run)
			})
		}
	}
}

// driveGo runs the steps with the go-sdk client and returns the transcript in the format of the JavaScript
// drivers.
func (l *lab) driveGo(t *testing.T, version string, command []string, steps func(*goSession)) string {
	t.Helper()
	mark := newMark()
	ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
	defer cancel()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = l.scripts
	cmd.Env = l.env(t, mark.variable())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stop := context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	defer stop()

	s := &goSession{ctx: ctx}
	s.wire = &recorder{Transport: &mcp.CommandTransport{Command: cmd, TerminateDuration: 5 * time.Second}}
	s.connect(s.wire, version)
	if s.session != nil {
		steps(s)
		s.wire.stop()
		_ = s.session.Close() // the transcript has the server's exit status
	}
	stop()
	mark.requireGone(t, "the client has exited")
	if ctx.Err() != nil || s.session == nil {
		t.Fatalf("%s: %v\n--- stderr\n%s\n--- transcript\n%s", strings.Join(command, " "), ctx.Err(), tail(stderr.String(), 4000), strings.Join(s.lines, "\n"))
	}
	end := exitKilled
	if status := cmd.ProcessState.ExitCode(); status >= 0 && status < 128 {
		end = fmt.Sprintf("{\"exit\":%d}\n", status)
	}
	lines := slices.Concat(s.lines, s.wire.lines())
	return normaliseGo(strings.Join(lines, "\n")+"\n") + end
}

// Values that differ from run to run: the time of day, and the state that a server signs with its expiry. Long
// values are replaced by their length.
var (
	goTime  = regexp.MustCompile(`\b\d{1,2}:\d\d:\d\d [AP]M\b`)
	goState = regexp.MustCompile(`"requestState":"v1\.[^"]+"`)
	goLong  = regexp.MustCompile(`(?:x{1000})x*|(?:é{1000})é*`)
)

func normaliseGo(transcript string) string {
	transcript = goTime.ReplaceAllString(transcript, "<time>")
	transcript = goState.ReplaceAllString(transcript, `"requestState":"<state>"`)
	return goLong.ReplaceAllStringFunc(transcript, func(s string) string { return fmt.Sprintf("<%d bytes>", len(s)) })
}

// A recorder records every message of a transport. The go-sdk handles requests concurrently, so they are
// sorted.
type recorder struct {
	mcp.Transport
	mu      sync.Mutex
	all     []string // guarded by mu
	stopped bool     // guarded by mu
}

func (r *recorder) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := r.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordedConn{Connection: conn, recorder: r}, nil
}

// stop ends the recording: now both sides shut down, and the order of their last messages is random.
func (r *recorder) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
}

func (r *recorder) add(tag string, m jsonrpc.Message) {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		b = fmt.Appendf(nil, "%q", err)
	}
	// A cancelled listen request may or may not get its result.
	if tag == "recv" && bytes.Contains(b, []byte(`/subscriptionId`)) && !bytes.Contains(b, []byte(`"method"`)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.all = append(r.all, fmt.Sprintf(`{%q:%s}`, tag, b))
	}
}

// await waits until a message that contains all parts is recorded.
func (r *recorder) await(ctx context.Context, parts ...string) error {
	for ctx.Err() == nil {
		r.mu.Lock()
		found := slices.ContainsFunc(r.all, func(line string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
		})
		r.mu.Unlock()
		if found {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("no message with %q: %w", parts, ctx.Err())
}

func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.all))
}

type recordedConn struct {
	mcp.Connection
	recorder *recorder
}

func (c *recordedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err == nil {
		c.recorder.add("recv", m)
	}
	return m, err
}

func (c *recordedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	c.recorder.add("sent", m)
	return c.Connection.Write(ctx, m)
}

// A goSession is the go-sdk client in one scenario.
type goSession struct {
	ctx     context.Context
	wire    *recorder
	session *mcp.ClientSession
	lines   []string

	mu      sync.Mutex
	answers []string // the actions for the next forms; guarded by mu
	updated chan string
	changed chan struct{}
	logged  chan string
}

func (s *goSession) modern() bool {
	return s.session.InitializeResult().ProtocolVersion >= "2026-07-28"
}

// step records the result of one action.
func (s *goSession) step(name string, result any, err error) {
	line := map[string]any{"step": name}
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		line["error"] = wire
	case err != nil:
		line["error"] = err.Error()
	default:
		line["result"] = result
	}
	b, err := json.Marshal(line)
	if err != nil {
		b = fmt.Appendf(nil, `{"step":%q,"error":%q}`, name, err)
	}
	s.lines = append(s.lines, string(b))
}

func (s *goSession) connect(transport mcp.Transport, version string) {
	s.updated, s.changed, s.logged = make(chan string, 64), make(chan struct{}, 64), make(chan string, 64)
	client := mcp.NewClient(&mcp.Implementation{Name: "attache-e2e-go", Version: "1.0.0"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "scripted", Role: "assistant", StopReason: "endTurn", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler:         s.elicit,
		ResourceUpdatedHandler:     func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) { s.updated <- req.Params.URI },
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { s.changed <- struct{}{} },
		LoggingMessageHandler:      func(_ context.Context, req *mcp.LoggingMessageRequest) { s.logged <- fmt.Sprint(req.Params.Data) },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	client.AddRoots(&mcp.Root{URI: "file:///workspace/alpha", Name: "alpha"}, &mcp.Root{URI: "file:///workspace/beta"})
	session, err := client.Connect(s.ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	s.session = session
	if err != nil {
		s.session = nil
		s.step("connect", nil, err)
		return
	}
	s.step("connect", session.InitializeResult(), nil)
}

func (s *goSession) elicit(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	action := "accept"
	if len(s.answers) > 0 {
		action, s.answers = s.answers[0], s.answers[1:]
	}
	if action != "accept" {
		return &mcp.ElicitResult{Action: action}, nil
	}
	return &mcp.ElicitResult{Action: action, Content: map[string]any{"confirm": true, "name": "given"}}, nil
}

func (s *goSession) listTools() {
	var tools []*mcp.Tool
	for tool, err := range s.session.Tools(s.ctx, nil) {
		if err != nil {
			s.step("list tools", nil, err)
			return
		}
		tools = append(tools, tool)
	}
	s.step("list tools", tools, nil)
}

func (s *goSession) call(name string, args any) { s.callAs(name, name, args, nil) }

func (s *goSession) callAs(label, name string, args any, meta mcp.Meta) {
	result, err := s.session.CallTool(s.ctx, &mcp.CallToolParams{Name: name, Arguments: args, Meta: meta})
	s.step("call "+label, result, err)
}

// await waits for an unsolicited message from the server.
func await[T any](s *goSession, what string, from <-chan T) {
	select {
	case got := <-from:
		s.step(what, got, nil)
	case <-time.After(maxWait):
		s.step(what, nil, errors.New("never came"))
	}
}

func briefingSteps(s *goSession) {
	s.listTools()
	s.call("echo", map[string]any{"text": "first"})
	s.call("echo", map[string]any{"text": "second"})
}

// everythingSteps waits, like the JavaScript scenarios, until the server has requested the roots.
func everythingSteps(s *goSession) {
	await(s, "roots asked for", s.logged)
	everythingRemoteSteps(s)
	s.call("get-roots-list", map[string]any{})
	resource, err := s.session.ReadResource(s.ctx, &mcp.ReadResourceParams{URI: "demo://resource/dynamic/text/7"})
	s.step("read", resource, err)
}

func fixtureSteps(s *goSession) {
	s.calls()
	s.call("no-such-tool", nil)
	s.ask()
	s.content()
	s.changes()
	s.progress()
	s.cancelCall()
}

// calls calls the tools of the fixture servers that send no requests.
func (s *goSession) calls() {
	s.listTools()
	s.callAs("echo", "echo", map[string]any{"text": "ä € \u2028 \x00 <&>"}, mcp.Meta{"com.example/key": map[string]any{"n": 9007199254740991}})
	s.call("add", map[string]any{"a": 2, "b": 40})
	s.callAs("add, refused", "add", map[string]any{"a": "two"}, nil)
	s.call("fail", nil)
	s.call("large", map[string]any{"bytes": 3 << 20})
	s.call("measure", map[string]any{"text": strings.Repeat("é", 1<<20)})
}

func (s *goSession) ask() {
	s.call("sample", map[string]any{"prompt": "a line"})
	for _, answer := range []string{"accept", "decline", "cancel"} {
		s.mu.Lock()
		s.answers = []string{answer}
		s.mu.Unlock()
		s.callAs("elicit, "+answer, "elicit", map[string]any{"question": "Deploy?"}, nil)
	}
	s.call("roots", nil)
	s.call("rounds", map[string]any{"env": "staging"})
}

func (s *goSession) content() {
	resources, err := s.session.ListResources(s.ctx, nil)
	s.step("list resources", resources, err)
	templates, err := s.session.ListResourceTemplates(s.ctx, nil)
	s.step("list templates", templates, err)
	prompts, err := s.session.ListPrompts(s.ctx, nil)
	s.step("list prompts", prompts, err)
	for _, uri := range []string{"fixture://note/1", "fixture://item/42", "fixture://nowhere"} {
		read, err := s.session.ReadResource(s.ctx, &mcp.ReadResourceParams{URI: uri})
		s.step("read "+uri, read, err)
	}
	for _, name := range []string{"greet", "ask-prompt", "nobody"} {
		prompt, err := s.session.GetPrompt(s.ctx, &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"name": "Ada"}})
		s.step("prompt "+name, prompt, err)
	}
	completed, err := s.session.Complete(s.ctx, &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "name", Value: "A"},
	})
	s.step("complete", completed, err)
}

func (s *goSession) progress() {
	params := &mcp.CallToolParams{Name: "progress", Arguments: map[string]any{"steps": 3}}
	params.SetProgressToken("a token of ours")
	result, err := s.session.CallTool(s.ctx, params)
	s.step("progress", result, err)
}

func (s *goSession) cancelCall() {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		_, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "block"})
		done <- err
	}()
	s.step("blocked call sent", nil, s.wire.await(s.ctx, `"sent"`, `"block"`))
	s.call("echo", map[string]any{"text": "a moment"}) // read after the blocked call, and answered
	cancel()
	s.step("cancelled call", nil, <-done)
	s.call("cancelled", nil)
	if s.session.InitializeResult().ServerInfo.Name == "attache-go" { // this server answers a cancelled call, too
		s.step("answer to the cancelled call", nil, s.wire.await(s.ctx, `"recv"`, `"text":"context canceled"`, `"isError":true`))
	}
}

func (s *goSession) changes() {
	const uri = "fixture://note/1"
	s.step("subscribe", nil, s.session.Subscribe(s.ctx, &mcp.SubscribeParams{URI: uri}))
	if s.modern() {
		// Subscribe does not wait for the server, which handles this request concurrently with the next one.
		s.step("subscribed", nil, s.wire.await(s.ctx, `"recv"`, "notifications/subscriptions/acknowledged", uri))
	}
	s.call("touch", map[string]any{"uri": uri})
	await(s, "updated", s.updated)
	s.call("grow", nil)
	await(s, "tools changed", s.changed)
	s.listTools()
	s.step("unsubscribe", nil, s.session.Unsubscribe(s.ctx, &mcp.UnsubscribeParams{URI: uri}))
	if s.modern() {
		// The SDK cancels its listen request in another goroutine.
		s.step("unsubscribed", nil, s.wire.await(s.ctx, `"sent"`, "notifications/cancelled"))
	} else {
		s.step("level", nil, s.session.SetLoggingLevel(s.ctx, &mcp.SetLoggingLevelParams{Level: "error"}))
		s.call("log", nil)
		for range 4 {
			await(s, "log", s.logged)
		}
		s.step("ping", nil, s.session.Ping(s.ctx, nil))
	}
}
