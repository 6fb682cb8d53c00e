package rewrite

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// secret hides the secret resources of testdata/hostile/uris.txt.
var secret = Rule{Hide: true, Tools: []string{"file:///secret/*", "https://api.example/secret/*", "note://Team/secret/*", "HTTP://Docs.Example/Secret/*"}}

// A uriRow is a row of testdata/hostile/uris.txt.
type uriRow struct {
	verdict string
	raw     string // a JSON string
}

func (r uriRow) uri() string { return wire.Value{Raw: []byte(r.raw)}.Text() }

func uriRows(t testing.TB) (rows []uriRow) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/hostile/uris.txt")
	check(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		text := lines.Text()
		if text == "" || text[0] == '#' {
			continue
		}
		row := strings.SplitN(text, " | ", 3)
		if len(row) != 3 {
			t.Fatalf("%q: want verdict | who | URI", text)
		}
		rows = append(rows, uriRow{row[0], `"` + row[2] + `"`})
	}
	return rows
}

// read sends a request through the layer and returns the verdict: passes, hidden or refused.
func read(t testing.TB, c *Conn, method, params string) string {
	t.Helper()
	verdict := "passes"
	call := new(relayed.Call)
	call.Reset(nil, false)
	call.Listen(false, func(_ *middleware.Call, n middleware.Note) {
		verdict = "hidden"
		if strings.Contains(n.Why, "normal form") {
			verdict = "refused"
		}
	})
	reached := false
	handler := c.wrap(func(context.Context, *wire.Message) error { reached = true; return nil })
	m := wire.NewNotification(wire.Client, method, []byte(params)) // needs no answer
	check(t, handler(&relayed.Context{Context: t.Context(), Call: call}, m))
	if reached != (verdict == "passes") {
		t.Errorf("%s %s reached the server: %v, but the note says %s", method, params, reached, verdict)
	}
	return verdict
}

func TestURIs(t *testing.T) {
	c := connect(t, secret)
	rows := uriRows(t)
	for _, row := range rows {
		got, irregular := read(t, c, "resources/read", `{"uri":`+row.raw+`}`), irregularity(row.uri()) != ""
		if (got == "passes") != (row.verdict == "passes") || irregular != (row.verdict == "refused") && row.verdict != "passes" {
			t.Errorf("%s: %s, not in normal form: %v, want %s", row.raw, got, irregular, row.verdict)
		}
	}
	if len(rows) < 100 {
		t.Errorf("only %d rows", len(rows))
	}
}

// A URI that the server listed may be read in any form, unless it is hidden.
func TestListedURIs(t *testing.T) {
	c := connect(t, secret)
	rows := uriRows(t)
	var list []string
	for _, row := range rows {
		list = append(list, `{"uri":`+row.raw+`}`)
	}
	call := new(relayed.Call)
	call.Reset(nil, true)
	c.watchResources((*middleware.Call)(call), nil, "resources", "uri")
	reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"resources":[`+strings.Join(list, ",")+`]}}`))
	for _, hook := range call.Hooks() {
		check(t, hook(&relayed.Context{Context: t.Context(), Call: call}, reply))
	}
	for _, row := range rows {
		shown := bytes.Contains(reply.Frame(), []byte(`{"uri":`+row.raw+`}`))
		if got := read(t, c, "resources/read", `{"uri":`+row.raw+`}`); got != map[bool]string{true: "passes", false: "hidden"}[shown] {
			t.Errorf("%s is in the list: %v, and %s", row.raw, shown, got)
		}
		if row.verdict == "hidden" && shown {
			t.Errorf("%s is in the list", row.raw)
		}
	}
}

// The memory for listed URIs is bounded.
func TestListedIsBounded(t *testing.T) {
	c := connect(t, secret)
	for i := range 3 {
		c.addListed(strings.Repeat("x", maxListed/2+i))
	}
	if len(c.listed.uris) != 1 || c.listed.size > maxListed {
		t.Errorf("%d URIs, %d bytes", len(c.listed.uris), c.listed.size)
	}
}

// A URI that is not in normal form is only refused because of rules that could hide it.
func TestMayMatchScheme(t *testing.T) {
	for _, test := range []struct {
		patterns string
		uri      string
		want     string
	}{
		{"delete_*", "FILE:///x", "passes"},
		{"delete*", "FILE:///x", "passes"},
		{"delete_*", "readme", "passes"},
		{"delete*", "readme", "refused"},
		{"search", "FILE:///x", "passes"},
		{"note://*", "FILE:///x", "passes"},
		{"f*", "FILE:///x", "hidden"},
		{"?ile:///secret/*", "FILE:///x", "refused"},
		{`\file:///secret/*`, "FILE:///x", "refused"},
		{"fi?*", "FILE:///x", "hidden"},
		{"f*y", "FILE:///x", "refused"},
		{"note://*", "no scheme", "refused"},
		{"*", "FILE:///x", "hidden"},
		{"*secret*", "FILE:///x", "refused"},
		{"*secret*", "note://Team/Secret", "hidden"},
		{"*://Team/*", "note://TEAM/x", "hidden"},
		{"file:///My%20Documents/*", "file:///my%20documents/a", "hidden"},
		{"file:///My Documents/*", "file:///My%20Documents/a", "hidden"},
		{"file:///größe/*", "file:///gr%C3%B6%C3%9Fe/a", "hidden"},
		{"note://a/*/", "note://a/b", "passes"},
		{"note://a/b/", "note://a/b/", "hidden"},
		{"note://a/b", "note://a/b/", "hidden"},
		{"note:///a//b*", "note://a/b", "hidden"},
		{"https://h/x?id=7", "https://h/x?id=7", "hidden"},
		{"urn:isbn:*", "urn:isbn:1", "hidden"},
	} {
		c := connect(t, Rule{Hide: true, Tools: []string{test.patterns}})
		if got := read(t, c, "resources/read", `{"uri":"`+test.uri+`"}`); got != test.want {
			t.Errorf("%s, %s: %s, want %s", test.patterns, test.uri, got, test.want)
		}
	}
}

// Finding out whether a rule could hide a URI uses bounded memory: a client may send one of
// megabytes.
func TestMayMatchSchemeIsBounded(t *testing.T) {
	patterns, scheme := []string{"file:///secret/documents/**", "note://team/*"}, strings.Repeat("a", 1<<16)
	if n := testing.AllocsPerRun(10, func() { mayMatchScheme(patterns, scheme) }); n > 4 {
		t.Errorf("%v allocations", n)
	}
}
