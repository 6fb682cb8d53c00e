package demo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/lmittmann/tint"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A session runs attache between a client that sends the frames of the script, and a server in this process.
type session struct {
	client  *io.PipeWriter // the client writes to it
	output  *io.PipeReader // the client reads from it
	replies *bufio.Reader  // reads output
	done    chan struct{}  // closed when the relay has ended
	err     error          // error of the relay, set before done is closed
	passed  chan struct{}  // receives a value when the server gets a frame of the client
	team    *team          // nil without other agents

	mu   sync.Mutex
	seen exchange     // the current exchange
	log  bytes.Buffer // the log of the current exchange
}

// An exchange is one frame of the client, with what the layers did to it. Frames are without newlines; nil
// means that there was none.
type exchange struct {
	sent, arrived   []byte // the client's frame as sent, and as the server received it
	reply, received []byte // the reply as the server sent it, and as the client received it
	asked           []string
	workspace       sessionstate.Fact // the session's workspace
	logged          string
}

// startSession starts a server and attache in front of it. attache has the layers that it has without a
// configuration, and either policies and an API key, or other agents.
func startSession(ctx context.Context, teams bool) (*session, error) {
	in, client := io.Pipe()
	output, out := io.Pipe()
	s := &session{
		client: client, output: output, replies: bufio.NewReader(output),
		done: make(chan struct{}), passed: make(chan struct{}, 1),
	}
	log := slog.New(tint.NewTextHandler(s, &tint.Options{NoColor: true, ReplaceAttr: withoutTime}))
	if teams {
		var err error
		if s.team, err = newTeam(ctx, log); err != nil {
			return nil, err
		}
	}
	layers := s.layers(log)
	go func() {
		defer close(s.done)
		s.err = proxy.Run(ctx, proxy.Options{
			ClientIn: in, ClientOut: out, Start: startServer,
			Layers: layers, Watch: s.watch, Log: log,
		})
		in.Close()
		out.Close()
	}()
	return s, nil
}

// withoutTime removes the time from log records, so that the demo prints the same each time.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// layers returns the chain, with an additional layer that observes the workspace.
func (s *session) layers(log *slog.Logger) []middleware.Layer {
	shared, err := capture.Compile(capture.Options{Identify: identify})
	if err != nil {
		panic(err) // a bug in the demo
	}
	c := shared.Connect(capture.ConnOptions{Log: log})
	catalog := new(middleware.Catalog)
	rules, err := arguments.Compile(arguments.Options{Rules: []arguments.Rule{arguments.Default()}})
	if err != nil {
		panic(err) // a bug in the demo
	}
	a := rules.Connect(arguments.ConnOptions{Catalog: catalog, Workspace: c, Log: log})
	chain := []middleware.Layer{c.Layer(), {Name: "demo", Wrap: s.observe}, a.Layer()}
	if s.team != nil {
		return append(chain, s.team.layer(catalog), catalog.Layer())
	}
	b := briefing.Compile(briefing.Options{Source: policySource(), Log: log}).Connect(briefing.ConnOptions{
		Credential: func(string) string { return apiKey },
		Log:        log,
	})
	return append(chain, b.Layer(), catalog.Layer())
}

func (s *session) observe(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if view := sessionstate.ContextOf(middleware.CallFrom(ctx)); view != nil {
			s.mu.Lock()
			s.seen.workspace = view.Workspace
			s.mu.Unlock()
		}
		return next(ctx, m)
	}
}

// Write stores the log of attache.
func (s *session) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// watch records frames as the server receives and sends them. It matches the id of the client's request,
// because attache may send requests of its own to the server.
func (s *session) watch(at proxy.Point, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frame := wire.Value{Raw: bytes.TrimSpace(bytes.Clone(line))}
	id := wire.Value{Raw: s.seen.sent}.Get("id").Raw
	ours := bytes.Equal(frame.Get("id").Raw, id)
	switch {
	case at == proxy.ServerIn && !ours:
		s.seen.asked = append(s.seen.asked, frame.Get("method").Text())
	case at == proxy.ServerIn:
		s.seen.arrived = frame.Raw
		select {
		case s.passed <- struct{}{}:
		default:
		}
	case at == proxy.ServerOut && ours:
		s.seen.reply = frame.Raw
	}
}

// step runs a step: the message of another agent, and the exchange of the frame.
func (s *session) step(ctx context.Context, step step) (exchange, error) {
	if step.message != "" {
		if err := s.team.write(ctx, step.message); err != nil {
			return exchange{}, err
		}
	}
	x, err := s.exchange(step.frame)
	x.received = withoutHandles(x.received)
	return x, err
}

// exchange sends a frame. It returns when the client has received the reply, or for a notification, when the
// server has received it.
func (s *session) exchange(frame string) (exchange, error) {
	s.mu.Lock()
	s.seen = exchange{sent: []byte(frame)}
	s.log.Reset()
	select {
	case <-s.passed: // from the previous frame
	default:
	}
	s.mu.Unlock()
	if _, err := io.WriteString(s.client, frame+"\n"); err != nil {
		return exchange{}, fmt.Errorf("attache did not read %s: %w", frame, err)
	}
	received, err := s.answer(frame)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.received, s.seen.logged = received, s.log.String()
	return s.seen, err
}

// answer waits for the reply to a request, or until the server has received a notification.
func (s *session) answer(frame string) ([]byte, error) {
	if !(wire.Value{Raw: []byte(frame)}).Get("id").Exists() {
		select {
		case <-s.passed:
			return nil, nil
		case <-s.done:
			return nil, fmt.Errorf("attache ended before the server got %s", frame)
		}
	}
	line, err := s.replies.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("attache ended before it answered %s: %w", frame, err)
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

// end closes the client's side, and waits until the server and the relay have ended.
func (s *session) end() error {
	s.client.Close()
	<-s.done
	s.output.Close()
	if s.team != nil {
		s.team.close()
	}
	return s.err
}
