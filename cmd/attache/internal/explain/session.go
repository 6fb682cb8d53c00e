package explain

import (
	"bufio"
	"context"
	"io"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// timeout is the timeout of an explanation's session. Policy sources and key endpoints may be slow, but
// their own timeouts are shorter.
const timeout = 30 * time.Second

// A session is a relay between a client that sends one frame, and a server in memory that answers every
// request.
type session struct {
	tools   []byte // the server's tools, a JSON array
	modern  bool
	name    string // the server's name
	in, out *mempipe.Pipe
	client  *inspect.Client
	done    chan struct{} // closed when the relay has ended
}

func startSession(ctx context.Context, o proxy.Options, s *session) {
	s.in, s.out, s.done = mempipe.New(0), mempipe.New(0), make(chan struct{})
	s.client = inspect.NewClient(s.in, s.out)
	o.ClientIn, o.ClientOut = s.in, s.out
	o.Start = func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(s.serve), nil }
	go func() {
		defer close(s.done)
		defer s.out.CloseWrite()
		_ = proxy.Run(ctx, o) // it logs its error
	}()
}

// handshake sends the messages of a client before its first call, and returns the reply to
// tools/list as the client sees it.
func (s *session) handshake() (wire.Value, error) {
	if s.modern {
		return s.client.Ask("tools/list", `{`+inspect.ModernMember+`}`)
	}
	if _, err := s.client.Initialize(); err != nil {
		return wire.Value{}, err
	}
	return s.client.Ask("tools/list", `{}`)
}

// frame sends the frame m and returns when the relay has handled it completely.
func (s *session) frame(m *wire.Message) (err error) {
	if m.Plain() && m.Kind() == wire.Request {
		_, err = s.client.Exchange(m.Method(), string(m.Frame()), string(m.ID()))
		return err
	}
	if _, err := s.in.Write(append(slices.Clone(m.Frame()), '\n')); err != nil {
		return err
	}
	// The relay keeps the order, so it has handled m when it answers a later request.
	_, err = s.client.Ask("ping", `{}`)
	return err
}

// end ends the session as a client does.
func (s *session) end() {
	s.in.CloseWrite()
	<-s.done
}

// answer returns the server's reply to a request, or nil for any other message.
func (s *session) answer(m *wire.Message) []byte {
	if m.Kind() != wire.Request {
		return nil
	}
	result := `{}`
	switch m.Method() {
	case "initialize":
		version := m.Get("params", "protocolVersion").Text()
		result = `{"protocolVersion":` + string(wire.Quote(version)) + `,"capabilities":{"tools":{}},"serverInfo":{"name":` +
			string(wire.Quote(s.name)) + `,"version":"1"}}`
	case "tools/list":
		result = `{"tools":` + string(s.tools) + `}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"(what the server answers)"}]}`
	}
	if m.Get("params", "_meta", "io.modelcontextprotocol/protocolVersion").Exists() {
		end := result[1:]
		if end != "}" {
			end = "," + end
		}
		result = `{"resultType":"complete"` + end
	}
	return wire.ResultReply(m.ID(), []byte(result)).Line()
}

// serve runs the server: it reads messages from in and writes the replies to out.
func (s *session) serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if _, err := out.Write(s.answer(wire.Parse(wire.Client, line))); err != nil {
			return nil
		}
	}
}
