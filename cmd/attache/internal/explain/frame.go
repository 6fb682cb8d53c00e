package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// maxFile is the maximum size of a frame, a list of tools or a recording.
const maxFile = 256 << 20

func composeCall(tool, arguments, meta string, modern bool) ([]byte, error) {
	args, err := objectFlag("--arguments", arguments)
	if err != nil {
		return nil, err
	}
	frame := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`), wire.Quote(tool)...)
	frame = append(append(frame, `,"arguments":`...), args...)
	if meta != "" || modern {
		m, err := objectFlag("--meta", meta)
		if err != nil {
			return nil, err
		}
		frame = append(append(frame, `,"_meta":`...), metaOf(m, modern)...)
	}
	return append(frame, "}}"...), nil
}

// objectFlag returns the JSON object in the value of a flag, on one line.
func objectFlag(flag, text string) ([]byte, error) {
	if strings.TrimSpace(text) == "" {
		return []byte(`{}`), nil
	}
	line, err := oneLine([]byte(text))
	switch {
	case err != nil:
		return nil, cli.Usagef("%s: %v: write one JSON object, in single quotes for the shell", flag, err)
	case line[0] != '{':
		return nil, cli.Usagef("%s: %s is not a JSON object: write one, such as '{\"path\": \"/src\"}'", flag, inspect.Shorten(line))
	}
	return line, nil
}

// metaOf returns the _meta of a request: meta, and before its members those that meta lacks and a
// request of the modern era needs.
func metaOf(meta []byte, modern bool) []byte {
	if !modern {
		return meta
	}
	out := []byte{'{'}
	for m := range (wire.Value{Raw: []byte(`{` + inspect.ModernMeta + `}`)}).Members() {
		if !(wire.Value{Raw: meta}).Get(m.Key.Text()).Exists() {
			out = append(append(append(out, m.Key.Raw...), ':'), m.Value.Raw...)
			out = append(out, ',')
		}
	}
	rest := bytes.TrimSpace(meta[1:])
	if rest[0] == '}' {
		out = bytes.TrimSuffix(out, []byte{','})
	}
	return append(out, rest...)
}

// oneLine returns a JSON text on one line: unchanged if it is on one line already, otherwise without
// white space. An error begins with the line and column.
func oneLine(data []byte) ([]byte, error) {
	var raw json.RawMessage
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(data, &raw); {
	case errors.As(err, &syntax):
		head := data[:max(0, syntax.Offset-1)] // before the wrong byte
		if syntax.Error() == "unexpected end of JSON input" {
			head = data
		}
		return nil, fmt.Errorf("%d:%d: %w", 1+bytes.Count(head, []byte{'\n'}), len(head)-bytes.LastIndexByte(head, '\n'), err)
	case err != nil:
		return nil, err
	}
	data = bytes.TrimSpace(data)
	if !bytes.ContainsAny(data, "\r\n") {
		return data, nil
	}
	var out bytes.Buffer
	err := json.Compact(&out, data)
	return out.Bytes(), err
}

// readInput reads the file of --frame: a frame, or a recording.
func readInput(path string, stdin io.Reader) (frame []byte, recording *record.Session, err error) {
	var data []byte
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(stdin, maxFile))
	} else {
		data, err = cli.ReadAtMost(path, maxFile)
	}
	if err != nil {
		return nil, nil, cli.Usagef("--frame: %s: %v", path, cli.Unreadable(err))
	}
	data = textfile.TrimMark(data)
	head, _, _ := bytes.Cut(data, []byte{'\n'})
	if header := (wire.Value{Raw: bytes.TrimSpace(head)}); json.Valid(head) && header.Get("version").Exists() && !header.Get("jsonrpc").Exists() {
		if recording, err = record.Read(bytes.NewReader(data)); err != nil {
			return nil, nil, cli.Usagef("--frame: %s: %v", path, err)
		}
		return nil, recording, nil
	}
	if frame, err = oneLine(data); err != nil {
		return nil, nil, cli.Usagef("--frame: %s:%v: it is neither one JSON-RPC message nor a recording of \"attache --record\"", path, err)
	}
	return frame, nil, nil
}

// look scans a frame as the relay does.
func look(frame []byte, names [][]string) *wire.Message {
	m := &wire.Message{}
	m.Reset(wire.Client, append(slices.Clone(frame), '\n'))
	(&wire.Scanner{ArgumentNames: names}).Look(m)
	return m
}
