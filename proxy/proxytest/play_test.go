package proxytest

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
)

// The error of a failed script names the line of the script and shows what the relay sent instead.
func TestPlayFailures(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, c := range map[string]struct{ script, want string }{
		"no line":      {"# one\nclient< x", "f:2: client<: nothing has reached the client:\n  want x"},
		"another line": {"client> " + ping + "\nserver< {}", "f:2: server<: another line has reached the server:\n  want {}"},
		"left over":    {"client> " + ping, "at the end of the script: a line has reached the server that nobody expected"},
		"not quiet":    {"client> " + ping + "\nquiet", "f:2: quiet: a line has reached the server"},
		"not among":    {"client> " + ping + "\nserver<~ x", "not among the 1 that have reached the server"},
		"no end":       {"client-> " + ping + "\nend", "f:2: end: the session has not ended"},
		"wrong end":    {"close client\nend boom", "which has no \"boom\" in it"},
		"bad end":      {"option start_error boom\nclient> x\nend", "has ended with an error: the server could not be started: boom"},
		"no eof":       {"client-> " + ping + "\neof server", "the server's input has not ended"},
		"no note":      {"note x", "no note was taken:\n  want x"},
		"no log":       {"log x", `nothing logged has "x" in it`},
		"no layer":     {"layers x=y", `there is no layer "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseScript("f", 1, []byte(c.script+"\n"), proxy.Options{})
			testkit.Check(t, err)
			synctest.Test(t, func(t *testing.T) {
				session := newSession(t, 0)
				err := Player{}.run(session, "f", s)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got  %v\nwant %s", err, c.want)
				}
			})
		})
	}
}

func TestScriptErrors(t *testing.T) {
	for script, want := range map[string]string{
		"hello":                       `f:7: unknown line "hello"`,
		"\n\nclose x":                 "f:9: close what? client or server",
		"wait long":                   "f:7: time: invalid duration",
		"quiet\noption enforce":       "f:8: option must come before all other lines",
		"option speed 9":              `f:7: unknown option "speed"`,
		"option hold x":               "f:7: strconv.Atoi",
		"client>q no quotes":          "f:7: no quotes is no Go string",
		"client>q \"\\q\"":            "is no Go string",
		"client >x":                   "unknown line",
		"server<<  x":                 "unknown line",
		"layers a\nlayers b\nclients": "f:9: unknown line",
	} {
		if _, err := parseScript("f", 7, []byte(script), proxy.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", script, err, want)
		}
	}
}

// The line numbers in the errors of a script in an archive are those of the file.
func TestLineNumbers(t *testing.T) {
	_, err := readScripts("testdata/broken.txtar", proxy.Options{})
	if err == nil || !strings.Contains(err.Error(), "broken.txtar:6: unknown line") {
		t.Errorf("err = %v", err)
	}
}
