package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/wire"
)

// explainTools are the server's tools as an explanation takes them.
type explainTools struct {
	list  []byte // a JSON array
	from  string // for people
	known bool
}

// names returns the names of the tools in a JSON array.
func toolNames(list []byte) []string {
	var all []string
	for entry := range (wire.Value{Raw: list}).Elements() {
		all = append(all, entry.Get("name").Text())
	}
	return all
}

// toolsFromFile reads a saved result of tools/list: the reply, its result, or the
// array alone.
func toolsFromFile(path string) (explainTools, error) {
	data, err := readAtMost(path, maxExplainFile)
	if err != nil {
		return explainTools{}, usagef("--tools: %s: %v", path, unreadable(err))
	}
	compact, err := oneLine(data)
	if err != nil {
		return explainTools{}, usagef("--tools: %s:%v", path, err)
	}
	v := wire.Value{Raw: compact}
	for _, at := range [][]string{{}, {"tools"}, {"result", "tools"}} {
		if list := v.Get(at...); list.IsArray() {
			return explainTools{list.Raw, "from " + path, true}, nil
		}
	}
	return explainTools{}, usagef("--tools: %s has no list of tools: save the answer to tools/list, {\"tools\":[...]}", path)
}

// assumedTools returns the tool of a call as it has to be for every rule to find
// its argument.
func assumedTools(tool string, arguments wire.Value, rules [][]string) explainTools {
	root := map[string]any{}
	for m := range arguments.Members() {
		root[m.Key.Text()] = map[string]any{}
	}
	for _, path := range rules {
		at := root
		for i, name := range path {
			if i == len(path)-1 {
				if at[name] == nil {
					at[name] = map[string]any{}
				}
				break
			}
			at = nested(at, name)
		}
	}
	list, _ := json.Marshal([]any{map[string]any{ // maps of strings never fail
		"name":        tool,
		"inputSchema": map[string]any{"type": "object", "properties": root},
	}})
	return explainTools{list: list, from: "assumed: the tool takes every argument that the call or a rule names, and requires none; " +
		`give the server behind "--", or --tools FILE, to use its own schema`}
}

// nested returns the properties of the object that is the property name.
func nested(properties map[string]any, name string) map[string]any {
	if schema, ok := properties[name].(map[string]any); ok {
		if inner, ok := schema["properties"].(map[string]any); ok {
			return inner
		}
	}
	inner := map[string]any{}
	properties[name] = map[string]any{"type": "object", "properties": inner}
	return inner
}

// listTime bounds what a server may take to start and to list its tools: npx may
// have to fetch it first.
const listTime = 60 * time.Second

// maxListPages bounds the pages of tools/list that are asked for.
const maxListPages = 100

// toolsOfServer starts a server, asks it for its tools and stops it. No tool is
// called. What the server says on stderr is told only if it fails: many write
// pages at each start.
func toolsOfServer(ctx context.Context, argv, env []string) (explainTools, error) {
	var list []byte
	v := visit{argv: argv, env: env, within: listTime}
	seen, err := v.ask(ctx, func(l *lister) (err error) {
		list, err = l.list()
		return err
	})
	var started *child.StartError
	switch {
	case errors.As(err, &started):
		return explainTools{}, err
	case err != nil:
		return explainTools{}, fmt.Errorf("the server's tools could not be listed: %w: try it alone, or save its tools and give --tools FILE%s", err, lastWords(seen.tail))
	}
	return explainTools{list, "of the server, asked for just now", true}, nil
}

// lastWords returns what a server that has ended said last on stderr, to be put
// behind what is said of its end.
func lastWords(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	return "; its last words on stderr:\n" + strings.Join(tail, "\n")
}

// A visit starts a server in order to ask it something, and leaves nothing of it
// behind.
type visit struct {
	argv, env []string
	within    time.Duration
}

// A visited is what is known of a server when the visit is over.
type visited struct {
	exit child.Exit
	tail []string // of its stderr; the server's own words
	took time.Duration
}

// ask has question ask a server that was started for it, and stops the server.
// The error is a *[child.StartError] where it could not be started.
func (v visit) ask(ctx context.Context, question func(*lister) error) (visited, error) {
	ctx, cancel := context.WithTimeout(ctx, v.within)
	defer cancel()
	began := time.Now()
	server, err := child.Start(context.Background(), child.Options{Argv: v.argv, Env: v.env})
	if err != nil {
		return visited{}, err
	}
	stop := context.AfterFunc(ctx, func() { server.Stop(context.Background()) })
	err = question(&lister{in: server.Stdin(), out: bufio.NewReader(server.Stdout())})
	took := time.Since(began)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it did not answer within %s", v.within)
	}
	stop()
	server.Stdout().Close()
	server.Stop(context.Background())
	return visited{exit: server.Wait(), tail: server.Tail(), took: took}, err
}

// A lister speaks to a server as a client does that only wants to know what it is.
type lister struct {
	in  io.Writer
	out *bufio.Reader
	n   int

	noise int    // lines that are no JSON
	first []byte // the first of them
}

func (l *lister) list() ([]byte, error) {
	reply, err := l.initialize()
	if err != nil {
		return nil, err
	}
	meta := ""
	if !reply.Get("result").Exists() {
		meta = modernMember // a server of the modern era knows no handshake
	}
	return l.pages(meta)
}

// modernMember is the member of params by which a request is one of the modern
// era.
const modernMember = `"_meta":{` + modernMeta + `}`

// initialize makes the handshake of the legacy era, and returns the reply to it,
// which may be an error.
func (l *lister) initialize() (wire.Value, error) {
	reply, err := l.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attache-explain","version":"1"}}`)
	if err == nil && reply.Get("result").Exists() {
		_, err = io.WriteString(l.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return reply, err
}

// discover asks a server of the modern era what it is.
func (l *lister) discover() (wire.Value, error) {
	return l.ask("server/discover", `{`+modernMember+`}`)
}

// pages returns the tools of all pages of tools/list. meta is a member of params,
// or empty.
func (l *lister) pages(meta string) ([]byte, error) {
	var all [][]byte
	cursor := ""
	for range maxListPages {
		params := strings.Trim(meta+","+cursor, ",")
		reply, err := l.ask("tools/list", `{`+params+`}`)
		if err != nil {
			return nil, err
		}
		page := reply.Get("result", "tools")
		if !page.IsArray() {
			return nil, fmt.Errorf("it answered tools/list with %s", shorten(reply.Raw))
		}
		for entry := range page.Elements() {
			all = append(all, entry.Raw)
		}
		next := reply.Get("result", "nextCursor")
		if !next.IsString() {
			break
		}
		cursor = `"cursor":` + string(next.Raw)
	}
	return slices.Concat([]byte{'['}, bytes.Join(all, []byte{','}), []byte{']'}), nil
}

// ask sends a request and returns the reply, past everything else that the server
// says.
func (l *lister) ask(method, params string) (wire.Value, error) {
	l.n++
	id := fmt.Sprintf(`"attache-explain-%d"`, l.n)
	if _, err := io.WriteString(l.in, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+"}\n"); err != nil {
		return wire.Value{}, fmt.Errorf("it ended before it answered %s", method) // it reads no more
	}
	for {
		line, err := l.out.ReadBytes('\n')
		if err != nil {
			return wire.Value{}, fmt.Errorf("it ended before it answered %s", method)
		}
		reply := wire.Value{Raw: bytes.TrimSpace(line)}
		switch {
		case !json.Valid(line):
			l.heardNoise(reply.Raw)
		case string(reply.Get("id").Raw) == id:
			return reply, nil
		}
	}
}

// heardNoise notes a line that is no JSON. An empty one disturbs nobody.
func (l *lister) heardNoise(line []byte) {
	if len(line) == 0 {
		return
	}
	if l.noise++; l.noise == 1 {
		l.first = line
	}
}

// shorten cuts what is shown of a frame.
func shorten(frame []byte) string {
	if len(frame) > maxShown {
		return strings.ToValidUTF8(string(frame[:maxShown]), "") + "…"
	}
	return string(frame)
}
