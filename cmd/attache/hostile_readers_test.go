package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// FuzzReaders sends frames and URIs through the chain with rules that enforce, and lets other parsers read
// what reaches the server: plain JavaScript and the TypeScript SDK in a node process, a python3 process, and
// encoding/json. None of them may find something that a rule refuses: a denied tool, a forbidden argument,
// another value of a pinned argument, a hidden prompt or resource.
func FuzzReaders(f *testing.F) {
	readers := startReaders(f)
	s := loadHostile(f, "../../testdata/hostile/readers.yaml")
	for _, frame := range proxytest.Frames(f, hostileFrames) {
		if len(frame.Bytes) < 4<<10 {
			f.Add(frame.Bytes, "force")
		}
	}
	for _, text := range hostileTexts(f) {
		f.Add([]byte(goodCall), text)
	}
	f.Fuzz(func(t *testing.T, frame []byte, text string) {
		text = withTokens(text)
		reached, _ := relayLines(t, s, hello+listTools+string(frame)+"\n"+framesOf(text))
		var lines []string
		for line := range strings.Lines(reached) {
			lines = append(lines, line)
		}
		for name, read := range readers {
			for _, broken := range read(t, lines) {
				t.Errorf("%s %s in %.4000q", name, broken, reached)
			}
		}
	})
}

// tokens are texts on which parsers differ. In fuzz inputs a control byte from 0x0e on stands for a token, so
// that the fuzzer finds them.
var tokens = [...]string{
	"../", "%2e", "%2f", "%73", "%25", "\\", "//", ":443", "@", "?", "#", ";", "\u200b", "\u00a0", "\u0131", "\u0130", "__proto__", "secret",
}

func withTokens(text string) string {
	for i, token := range tokens {
		text = strings.ReplaceAll(text, string(rune(0x0e+i)), token)
	}
	return text
}

// framesOf returns frames with a text in each place that a rule reads.
func framesOf(text string) string {
	quoted := string(wire.Quote(text))
	var out strings.Builder
	for i, format := range []string{
		`{"jsonrpc":"2.0","id":%d,"method":%s,"params":{"name":"drop","arguments":{},"uri":"file:///secret/plan"}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":{}}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"keep","arguments":{%s:{"force":true,"tenant":"evil"}}}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"keep","arguments":{"options":{%s:{"force":true}}}}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"keep",%s:{"force":true,"name":"drop"}}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%s}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":%s}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"file:///open",%s:"file:///secret/plan"}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"prompts/get","params":{"name":%s}}`,
	} {
		fmt.Fprintf(&out, format+"\n", 100+i, quoted)
	}
	return out.String()
}

// hostileTexts returns the URIs of uris.txt, and names that some parser takes for a name in a rule.
func hostileTexts(t testing.TB) []string {
	texts := []string{
		"force", "Force", " force", "force\t", "\u200bforce", "for\u00adce", "\ufeffforce", "options", "opt\u0131ons", "OPT\u0130ONS", "tenant\u00a0", "TENANT",
		"__proto__", "constructor", "arguments ", "argumentſ", "urı", "URİ", "uri\u0307", "drop", "secret_plan",
		"tools/call ", "Tools/Call", "tools/call\n", "resources/Read", "Resources/read\u200b", "PROMPTS/GET",
	}
	for line := range strings.Lines(page(t, "testdata/hostile/uris.txt")) {
		if row := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 3); len(row) == 3 && line[0] != '#' {
			texts = append(texts, wire.Value{Raw: []byte(`"` + row[2] + `"`)}.Text())
		}
	}
	return texts
}

// A frameReader returns the calls and reads in frames that the rules forbid.
type frameReader func(t testing.TB, frames []string) []string

// startReaders starts the readers. Without node, python3 or the packages of the end-to-end tests it skips the
// test; in CI the test fails.
func startReaders(t testing.TB) map[string]frameReader {
	absent := func(what string) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is needed to compare readers", what)
		}
		t.Skipf("%s is not here, so the readers are not compared", what)
	}
	const dir = "../../testdata/e2e"
	if _, err := os.Stat(dir + "/node_modules/@modelcontextprotocol/sdk"); err != nil {
		absent("the TypeScript SDK (npm --prefix testdata/e2e install)")
	}
	readers := map[string]frameReader{"encoding/json": readAsGo}
	for program, script := range map[string]string{"node": "reader.mjs", "python3": "reader.py"} {
		if _, err := exec.LookPath(program); err != nil {
			absent(program)
		}
		readers[program] = startReader(t, program, filepath.Join(dir, "readers", script))
	}
	return readers
}

// startReader starts a reader that reads arrays of frames, one a line, and answers each with an array of its
// findings.
func startReader(t testing.TB, program, script string) frameReader {
	c := exec.Command(program, script)
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	check(t, err)
	stdout, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	t.Cleanup(func() { stdin.Close(); io.Copy(io.Discard, stdout); c.Wait() })
	answers := bufio.NewReader(stdout)
	read := func(t testing.TB, frames []string) (found []string) {
		t.Helper()
		line, err := json.Marshal(frames)
		check(t, err)
		if _, err := stdin.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		answer, err := answers.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(answer, &found)
		}
		if err != nil {
			t.Fatalf("%s answers %.200q: %v", program, answer, err)
		}
		return found
	}
	read(t, []string{}) // so that its start is not in the 10 s that Go's fuzzer gives an input
	return read
}

// readAsGo decodes into structs, which ignore the case of names, and parses URIs with net/url.
func readAsGo(_ testing.TB, frames []string) (found []string) {
	for _, frame := range frames {
		for _, one := range members([]byte(frame)) {
			var m struct {
				Method string
				Params struct {
					Name, URI string
					Arguments struct {
						Force, Tenant any
						Options       struct{ Force any }
					}
				}
			}
			json.Unmarshal(one, &m) // what it read before an error counts too
			p := m.Params
			switch {
			case m.Method == "tools/call":
				if p.Name == "drop" || p.Arguments.Force != nil || p.Arguments.Options.Force != nil || p.Arguments.Tenant != "acme" {
					found = append(found, fmt.Sprintf("calls %+v", p))
				}
			case m.Method == "prompts/get" && p.Name == "secret_plan",
				(m.Method == "resources/read" || m.Method == "resources/subscribe") && isSecret(p.URI):
				found = append(found, fmt.Sprintf("gets %+v", p))
			}
		}
	}
	return found
}

// isSecret reports whether net/url finds a hidden resource in a URI. The rules hide what is under a
// directory, with its name and a slash, but not its name alone.
func isSecret(uri string) bool {
	u, err := url.Parse(strings.TrimSpace(uri))
	if err != nil {
		return false
	}
	clean := strings.ToLower(path.Join("/", u.Path, u.Opaque))
	if strings.HasSuffix(u.Path+u.Opaque, "/") {
		clean += "/"
	}
	switch u.Scheme + "://" + strings.ToLower(u.Host) {
	case "https://api.example", "https://api.example:443", "http://docs.example", "http://docs.example:80", "note://team":
		return strings.HasPrefix(clean, "/secret/")
	}
	return u.Scheme == "file" && strings.HasPrefix(clean, "/secret/")
}
