package explain

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// timeout bounds the session of an explanation. A policy source or a key endpoint may be slow,
// but has shorter limits of its own.
const timeout = 30 * time.Second

// A session is a relay between a client that sends one frame and a server in memory that answers
// every request.
type session struct {
	tools   []byte // the array of the server's tools
	modern  bool
	name    string // of the server
	in      *io.PipeWriter
	replies chan []byte
	over    chan error
}

// startSession starts a relay with the options o.
func startSession(ctx context.Context, o proxy.Options, s *session) {
	in, client := io.Pipe()
	output, out := io.Pipe()
	s.in, s.replies, s.over = client, make(chan []byte, 64), make(chan error, 1)
	o.ClientIn, o.ClientOut = in, out
	o.Start = func(context.Context) (proxy.Upstream, error) {
		return mempipe.Serve(func(in io.Reader, out io.Writer) error { return serve(in, out, s.answer) }), nil
	}
	go func() {
		s.over <- proxy.Run(ctx, o)
		in.Close()
		out.Close()
	}()
	go func() {
		defer close(s.replies)
		lines := bufio.NewReader(output)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			s.replies <- bytes.TrimSuffix(line, []byte{'\n'})
		}
	}()
}

// The ids of what the session says beside the frame that is explained.
const (
	idInitialize = `"attache-explain-initialize"`
	idList       = `"attache-explain-list"`
	idEnd        = `"attache-explain-end"`
)

const legacyInitialize = `{"jsonrpc":"2.0","id":` + idInitialize + `,"method":"initialize","params":{` +
	`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attache-explain","version":"1"}}}`

// handshake sends the messages of a client before its first call, and returns the reply to
// tools/list as the client sees it.
func (s *session) handshake(ctx context.Context) ([]byte, error) {
	params := `{}`
	if s.modern {
		params = `{"_meta":{` + inspect.ModernMeta + `}}`
	} else {
		if _, err := s.ask(ctx, []byte(legacyInitialize), idInitialize); err != nil {
			return nil, err
		}
		if err := s.say([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			return nil, err
		}
	}
	return s.ask(ctx, []byte(`{"jsonrpc":"2.0","id":`+idList+`,"method":"tools/list","params":`+params+`}`), idList)
}

// frame sends the frame m and returns when everything that follows from it has happened.
func (s *session) frame(ctx context.Context, m *wire.Message) error {
	if m.Plain() && m.Kind() == wire.Request {
		_, err := s.ask(ctx, m.Frame(), string(m.ID()))
		return err
	}
	if err := s.say(m.Frame()); err != nil {
		return err
	}
	// Order is kept, so it is over with when what was said behind it is answered.
	_, err := s.ask(ctx, []byte(`{"jsonrpc":"2.0","id":`+idEnd+`,"method":"ping"}`), idEnd)
	return err
}

func (s *session) say(frame []byte) error {
	_, err := s.in.Write(append(slices.Clone(frame), '\n'))
	return err
}

// ask sends a request and waits for its reply.
func (s *session) ask(ctx context.Context, frame []byte, id string) ([]byte, error) {
	if err := s.say(frame); err != nil {
		return nil, err
	}
	for {
		select {
		case reply, ok := <-s.replies:
			if !ok {
				return nil, errors.New("the session ended early; see what is logged above")
			}
			if string((wire.Value{Raw: reply}).Get("id").Raw) == id {
				return reply, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("nothing came of it within %s", timeout)
		}
	}
}

// end ends the session as a client does.
func (s *session) end() {
	s.in.Close()
	<-s.over
	for range s.replies { // until the reader has seen the end
	}
}

// answer is the server: it returns the reply to a request, nil for any other message.
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

// serve answers what is written to in, line by line.
func serve(in io.Reader, out io.Writer, answer func(m *wire.Message) []byte) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var m wire.Message
		m.Reset(wire.Client, line)
		new(wire.Scanner).Look(&m)
		if _, err := out.Write(answer(&m)); err != nil {
			return nil
		}
	}
}
