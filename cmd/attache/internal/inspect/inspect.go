// Package inspect starts a server, asks it about itself and its tools, and stops it.
package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
)

// ModernMeta contains the members of _meta that a request of the modern era needs.
const ModernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"attache-explain","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}`

// ToolNames returns the names of the tools in a JSON array.
func ToolNames(list []byte) []string {
	var all []string
	for entry := range (wire.Value{Raw: list}).Elements() {
		all = append(all, entry.Get("name").Text())
	}
	return all
}

// Timeout is how long a server may take to start and to list its tools. It is long because npx may
// have to download the server.
const Timeout = 60 * time.Second

// maxListPages bounds the pages of tools/list that are requested.
const maxListPages = 100

// A Target is a server: a command with its environment, or, if Remote is not nil, a
// remote server.
type Target struct {
	Argv, Env []string
	Remote    *remote.Options
}

// An AskResult describes a server after it was asked.
type AskResult struct {
	Exit child.Exit
	Tail []string // the last lines of its stderr
	Took time.Duration
}

// Ask starts the server, calls question with a client of the server, and stops it after limit at the
// latest. It leaves no process behind. The error is a [*child.StartError] if the server could not be
// started.
func (t Target) Ask(ctx context.Context, limit time.Duration, question func(*Client) error) (seen AskResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	ask := func(in io.Writer, out io.Reader) error {
		err := question(NewClient(in, out))
		seen.Took = time.Since(began)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("it did not answer within %s", limit)
		}
		return err
	}
	if t.Remote != nil {
		server, err := remote.Start(*t.Remote)
		if err != nil {
			return seen, err
		}
		defer context.AfterFunc(ctx, server.Stop)()
		defer server.Stop()
		err = ask(server.Stdin(), server.Stdout())
		return seen, err
	}
	server, err := child.Start(context.Background(), child.Options{Argv: t.Argv, Env: t.Env})
	if err != nil {
		return seen, err
	}
	stop := context.AfterFunc(ctx, func() { server.Stop(context.Background()) })
	err = ask(server.Stdin(), server.Stdout())
	stop()
	server.Stdout().Close()
	server.Stop(context.Background())
	seen.Exit, seen.Tail = server.Wait(), server.Tail()
	return seen, err
}

// A Client asks a server about itself and its tools.
type Client struct {
	in   io.Writer
	out  *bufio.Reader
	left *io.LimitedReader // under out
	n    int

	Noise int    // the number of lines that are not JSON
	First []byte // the first of these lines
}

// maxOutput bounds the bytes that a client reads, because a server may write without end.
const maxOutput = 64 << 20

// NewClient returns a client that writes to in and reads from out.
func NewClient(in io.Writer, out io.Reader) *Client {
	left := &io.LimitedReader{R: out, N: maxOutput}
	return &Client{in: in, out: bufio.NewReader(left), left: left}
}

// List performs the handshake, if the server supports it, and returns the tools as a JSON array.
func (l *Client) List() ([]byte, error) {
	reply, err := l.Initialize()
	if err != nil {
		return nil, err
	}
	meta := ""
	if !reply.Get("result").Exists() {
		meta = ModernMember // a server of the modern era has no handshake
	}
	return l.Pages(meta)
}

// ModernMember is the member of params that makes a request one of the modern era.
const ModernMember = `"_meta":{` + ModernMeta + `}`

// Initialize performs the handshake of the legacy era. It returns the reply, which may be a JSON-RPC
// error.
func (l *Client) Initialize() (wire.Value, error) {
	reply, err := l.Ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attache-explain","version":"1"}}`)
	if err == nil && reply.Get("result").Exists() {
		_, err = io.WriteString(l.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return reply, err
}

// Discover asks a server of the modern era about itself.
func (l *Client) Discover() (wire.Value, error) {
	return l.Ask("server/discover", `{`+ModernMember+`}`)
}

// Pages returns the tools of all pages of tools/list. meta is a member of params,
// or empty.
func (l *Client) Pages(meta string) ([]byte, error) {
	var all [][]byte
	cursor := ""
	for range maxListPages {
		params := strings.Trim(meta+","+cursor, ",")
		reply, err := l.Ask("tools/list", `{`+params+`}`)
		if err != nil {
			return nil, err
		}
		page := reply.Get("result", "tools")
		if !page.IsArray() {
			return nil, fmt.Errorf("it answered tools/list with %s", Shorten(reply.Raw))
		}
		for entry := range page.Elements() {
			all = append(all, entry.Raw)
		}
		next := reply.Get("result", "nextCursor")
		if !next.IsString() || next.Equals("") {
			break
		}
		cursor = `"cursor":` + string(next.Raw)
	}
	return slices.Concat([]byte{'['}, bytes.Join(all, []byte{','}), []byte{']'}), nil
}

// firstID separates the ids of Ask from those of Exchange.
const firstID = 700_000_000

// Ask sends a request and returns the reply. It skips all other messages of the server, but answers its
// requests. The id is a number, because servers made with Effect answer no other.
func (l *Client) Ask(method, params string) (wire.Value, error) {
	l.n++
	id := strconv.Itoa(firstID + l.n)
	return l.Exchange(method, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+"}", id)
}

// Exchange is like Ask for the frame of a request with this raw id.
func (l *Client) Exchange(method, frame, id string) (wire.Value, error) {
	ended := fmt.Errorf("it ended before it answered %s", method)
	if _, err := io.WriteString(l.in, frame+"\n"); err != nil {
		return wire.Value{}, ended
	}
	for {
		line, err := l.out.ReadBytes('\n')
		switch {
		case err != nil && l.left.N <= 0:
			return wire.Value{}, fmt.Errorf("it wrote more than 64 MiB and no answer to %s", method)
		case err != nil:
			return wire.Value{}, ended
		}
		reply := wire.Value{Raw: bytes.TrimSpace(line)}
		switch {
		case len(reply.Raw) == 0: // an empty line is harmless
		case !json.Valid(line):
			if l.Noise++; l.Noise == 1 {
				l.First = reply.Raw
			}
		case reply.Get("id").Exists() && reply.Get("method").Exists():
			if l.answer(reply) != nil {
				return wire.Value{}, ended
			}
		case string(reply.Get("id").Raw) == id:
			return reply, nil
		}
	}
}

// answer answers a request of the server: a ping, or one for a capability that the client does not have. Some
// servers send those to every client, and list no tools before the answer.
func (l *Client) answer(request wire.Value) error {
	id := request.Get("id").Raw
	reply := wire.ErrorReply(id, wire.CodeMethodNotFound, "Method not found")
	if request.Get("method").Equals("ping") {
		reply = wire.ResultReply(id, []byte(`{}`))
	}
	_, err := l.in.Write(reply.Line())
	return err
}

// Shorten returns the beginning of a frame for people.
func Shorten(frame []byte) string { return cli.Cut(frame, cli.MaxShown) }
