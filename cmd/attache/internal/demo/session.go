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

// A session runs attache between a client, whose frames are written by hand, and a server in
// this process.
type session struct {
	client  *io.PipeWriter // what the client writes to
	output  *io.PipeReader // what it reads from
	replies *bufio.Reader  // output, by the line
	done    chan struct{}  // closed when the relay is over
	err     error          // how it ended; written before done is closed
	passed  chan struct{}  // told of each frame that the server got
	team    *team          // nil without other agents

	mu   sync.Mutex
	seen exchange     // of the frame under way
	log  bytes.Buffer // what attache logged meanwhile
}

// An exchange is one frame of the client and what the layers did to it. Frames are
// without their newlines; nil stands for one that there was not.
type exchange struct {
	sent, arrived   []byte // the client's frame as it was sent, and as the server got it
	reply, received []byte // the reply as the server sent it, and as the client received it
	asked           []string
	workspace       sessionstate.Fact // what the session's workspace was
	briefed         bool              // attache put the briefing into the reply
	logged          string
}

// startSession starts a server, and attache in front of it with the layers it
// has without configuration, and with policies and an API key, or other agents.
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

// layers returns the chain of a run with an API key and policies, and a layer that
// looks on.
func (s *session) layers(log *slog.Logger) []middleware.Layer {
	shared, err := capture.Compile(capture.Options{Identify: identify})
	if err != nil {
		panic(err) // a mistake in the demo itself
	}
	c := shared.Connect(capture.ConnOptions{Log: log})
	catalog := new(middleware.Catalog)
	rules, err := arguments.Compile(arguments.Options{Rules: []arguments.Rule{arguments.Default()}})
	if err != nil {
		panic(err) // also a mistake in the demo
	}
	a := rules.Connect(arguments.ConnOptions{Catalog: catalog, Workspace: c, Log: log})
	if s.team != nil {
		return []middleware.Layer{c.Layer(), {Name: "demo", Wrap: s.look}, a.Layer(), s.team.layer(catalog), catalog.Layer()}
	}
	b := briefing.Compile(briefing.Options{Source: policySource(), Log: log}).Connect(briefing.ConnOptions{
		Credential: func(string) string { return apiKey },
		Carried: func(string, string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen.briefed = true
		},
		Log: log,
	})
	return []middleware.Layer{c.Layer(), {Name: "demo", Wrap: s.look}, a.Layer(), b.Layer(), catalog.Layer()}
}

// look notes what is known of the session.
func (s *session) look(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if view, ok := middleware.CallFrom(ctx).Value(sessionstate.ContextKey{}).(*sessionstate.Context); ok {
			s.mu.Lock()
			s.seen.workspace = view.Workspace
			s.mu.Unlock()
		}
		return next(ctx, m)
	}
}

// Write keeps what attache logs.
func (s *session) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

// watch records frames as the server receives and sends them. It finds them by the id of the
// client's request, because attache may ask the server something itself.
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

// step plays a step: what another agent writes, and the exchange of the frame.
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

// exchange sends a frame, and returns when it has been answered, or if it asks for
// no answer, when the server has got it.
func (s *session) exchange(frame string) (exchange, error) {
	s.mu.Lock()
	s.seen = exchange{sent: []byte(frame)}
	s.log.Reset()
	select {
	case <-s.passed: // of the frame before
	default:
	}
	s.mu.Unlock()
	if _, err := io.WriteString(s.client, frame+"\n"); err != nil {
		return exchange{}, fmt.Errorf("attache did not take %s: %w", frame, err)
	}
	got, err := s.answer(frame)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.received, s.seen.logged = got, s.log.String()
	return s.seen, err
}

// answer waits for the answer to a frame, nil if it asks for none.
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

// end closes the client's side, and waits until server and relay have ended.
func (s *session) end() error {
	s.client.Close()
	<-s.done
	s.output.Close()
	if s.team != nil {
		s.team.close()
	}
	return s.err
}
