package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

const (
	hostileFrames = "../../testdata/hostile/frames.txt"
	hostileRules  = "../../testdata/hostile/rules.yaml"
)

// The lines around a hostile frame: the beginning of a session, and a good call.
const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}
`
	goodCall = `{"jsonrpc":"2.0","id":"good","method":"tools/call","params":{"name":"keep","arguments":{"tenant":"acme"}}}
`
)

// TestHostileFrames sends each frame of the table through the chain of a real configuration to a server that
// records its input. To no parser is anything in it a call of the denied tool, or has another value than the
// pinned one; and the session survives.
func TestHostileFrames(t *testing.T) {
	s := loadHostileRules(t)
	for _, f := range proxytest.Frames(t, hostileFrames) {
		t.Run(f.Name, func(t *testing.T) {
			frame := string(f.Bytes) + "\n"
			opening := hello + listTools
			reached, answered := relayLines(t, s, opening+frame+goodCall)
			rest, ok := strings.CutPrefix(reached, opening)
			rest, last := strings.CutSuffix(rest, goodCall)
			if !ok || !last {
				t.Fatalf("the session did not live: %.2000q reached the server", reached)
			}
			if rest = withoutOwn(rest); (rest == "") != (f.Verdict == "stopped") {
				t.Errorf("the table says it is %s, and this reached the server: %.2000q", f.Verdict, rest)
			}
			if n := strings.Count(answered, `"id":"good"`); n != 1 {
				t.Errorf("the good call has %d answers", n)
			}
			if n := strings.Count(answered, `"id":7,`); n > 1 {
				t.Errorf("the frame has %d answers", n)
			}
			requireRulesHold(t, reached)

			// The same before attache knows the server's tools.
			reached, _ = relayLines(t, s, hello+frame)
			requireRulesHold(t, reached)
		})
	}
}

// TestHostileFramesRewrite is TestHostileFrames with a hidden tool instead of a denied one, and a set argument
// instead of a pinned one. No parser may read a frame in a way that bypasses either rule.
func TestHostileFramesRewrite(t *testing.T) {
	s := loadHostile(t, "../../testdata/hostile/rewrite.yaml")
	for _, f := range proxytest.Frames(t, hostileFrames) {
		t.Run(f.Name, func(t *testing.T) {
			reached, _ := relayLines(t, s, hello+listTools+string(f.Bytes)+"\n"+goodCall)
			if !strings.HasSuffix(reached, goodCall) {
				t.Fatalf("the session did not live: %.2000q reached the server", reached)
			}
			requireRulesHold(t, reached)
			reached, _ = relayLines(t, s, hello+string(f.Bytes)+"\n")
			requireRulesHold(t, reached)
		})
	}
}

// FuzzHostileFrames sends arbitrary bytes the same way.
func FuzzHostileFrames(f *testing.F) {
	s := loadHostileRules(f)
	for i, frame := range proxytest.Frames(f, hostileFrames) {
		if len(frame.Bytes) < 4<<10 {
			f.Add(append(frame.Bytes, '\n'), i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, listed bool) {
		opening := hello
		if listed {
			opening += listTools
		}
		reached, _ := relayLines(t, s, opening+string(data))
		requireRulesHold(t, reached)
	})
}

// withoutOwn removes attache's own lines: its requests, and its answers to replies that it refused.
func withoutOwn(lines string) string {
	var rest strings.Builder
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":"own-`) && !strings.Contains(line, `"data":{"source":"attache"}`) {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

func loadHostileRules(t testing.TB) *config.Settings { return loadHostile(t, hostileRules) }

// loadHostile loads a configuration.
func loadHostile(t testing.TB, file string) *config.Settings {
	t.Helper()
	path, err := filepath.Abs(file)
	check(t, err)
	return attachetest.Load(t, cli.Process{Env: []string{"ATTACHE_CONFIG=" + path}})
}

// relayLines relays the client's lines to a server with the layers and rules of s, and returns the output to the
// server and to the client.
func relayLines(t testing.TB, s *config.Settings, client string) (reached, answered string) {
	t.Helper()
	conn := assemble(t, s, assembly.Options{Audit: true}, assembly.ConnOptions{})
	var in, out bytes.Buffer
	serve := func(r io.Reader, w io.Writer) error {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadBytes('\n')
			in.Write(line)
			if reply := carefulReply(line); reply != "" {
				_, _ = io.WriteString(w, reply)
			}
			if err != nil {
				return nil
			}
		}
	}
	o := conn.Relay()
	o.ClientIn, o.ClientOut = strings.NewReader(client), &out
	o.IDPrefix = "own-"
	o.Start = func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(serve), nil }
	check(t, proxy.Run(t.Context(), o))
	conn.Close()
	conn.Shared().Close()
	return in.String(), out.String()
}

// carefulReply returns the reply of a server with two tools that ignores what it cannot read.
func carefulReply(line []byte) string {
	var frame struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(line, &frame) != nil || frame.ID == nil {
		return ""
	}
	result := `{"content":[]}`
	switch frame.Method {
	case "tools/list":
		result = `{"tools":[{"name":"drop","inputSchema":{"type":"object"}},{"name":"keep","inputSchema":{"type":"object","properties":{"tenant":{"type":"string"}}}}]}`
	case "initialize":
		result = `{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", frame.ID, result)
}

// requireRulesHold checks that no parser reads a call of the denied tool, or another tenant than the pinned one, in
// the server's input. For some parsers a carriage return ends a line.
func requireRulesHold(t testing.TB, reached string) {
	t.Helper()
	for _, line := range strings.FieldsFunc(reached, func(c rune) bool { return c == '\n' || c == '\r' }) {
		for _, read := range []func([]byte) []parsedCall{lastWins, merging, firstWins} {
			for _, a := range read([]byte(line)) {
				if a.tool == "drop" || a.tool == "keep" && a.tenant != "acme" {
					t.Fatalf("one parser reads a call of %q for tenant %v in %.2000q", a.tool, a.tenant, line)
				}
			}
		}
	}
}

// A parsedCall is a call of a tool as a parser reads it.
type parsedCall struct {
	tool   string
	tenant any // nil for none
}

// lastWins decodes like JavaScript, Python and Go's maps: the last of two equal keys counts.
func lastWins(line []byte) (all []parsedCall) {
	for _, one := range members(line) {
		var frame map[string]any
		if json.Unmarshal(one, &frame) != nil {
			continue
		}
		params, _ := frame["params"].(map[string]any)
		arguments, _ := params["arguments"].(map[string]any)
		if name, ok := params["name"].(string); ok && frame["method"] == "tools/call" {
			all = append(all, parsedCall{name, arguments["tenant"]})
		}
	}
	return all
}

// merging decodes like Go's structs: case is ignored, and two equal objects are merged.
func merging(line []byte) (all []parsedCall) {
	for _, one := range members(line) {
		var frame struct {
			Method string
			Params struct {
				Name      string
				Arguments struct{ Tenant any }
			}
		}
		json.Unmarshal(one, &frame) // what it read before an error counts too
		if frame.Method == "tools/call" {
			all = append(all, parsedCall{frame.Params.Name, frame.Params.Arguments.Tenant})
		}
	}
	return all
}

// firstWins reads like gjson: the first of two equal keys counts, and text around the object is ignored.
func firstWins(line []byte) (all []parsedCall) {
	read := func(frame gjson.Result) {
		if frame.Get("method").String() == "tools/call" {
			all = append(all, parsedCall{frame.Get("params.name").String(), frame.Get("params.arguments.tenant").Value()})
		}
	}
	if frame := gjson.ParseBytes(line); frame.IsArray() {
		frame.ForEach(func(_, member gjson.Result) bool { read(member); return true })
	} else {
		read(frame)
	}
	return all
}

// members returns the messages in a line: itself, or the elements of an array.
func members(line []byte) [][]byte {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		return [][]byte{line}
	}
	var out [][]byte
	for _, m := range batch {
		out = append(out, m)
	}
	return out
}
