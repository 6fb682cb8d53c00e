package login

import (
	"strings"
	"testing"
)

// A server may send several challenges, of several schemes, in one header or more.
func TestChallenges(t *testing.T) {
	const named = `resource_metadata="https://a.example/meta"`
	for _, test := range []struct {
		values, metadata, scopes string
		bearer                   bool
	}{
		{"", "", "", true},
		{`Bearer`, "", "", true},
		{`Basic realm="x"`, "", "", false},
		{`Bearer scope="a b", ` + named, "https://a.example/meta", "a b", true},
		{`Basic realm="x", Bearer ` + named, "https://a.example/meta", "", true},
		{`Basic realm="x"|Bearer ` + named + `|Bearer scope="c", resource_metadata="https://b.example/"`, "https://a.example/meta", "", true},
		{`DPoP scope="a", ` + named, "https://a.example/meta", "a", true},
		{`Bearer scope="a"|Negotiate`, "", "a", true},
		{`Basic realm="`, "", "", true}, // it cannot be read
	} {
		var values []string
		if test.values != "" {
			values = strings.Split(test.values, "|")
		}
		if c := parseChallenge(values); c.metadata != test.metadata || strings.Join(c.scopes, " ") != test.scopes || c.bearer != test.bearer {
			t.Errorf("%s: %+v", test.values, c)
		}
	}
}

// Metadata is about a server if it names the server's address, or one above it (RFC 9728, section 3.3).
func TestU25Covers(t *testing.T) {
	for resource, want := range map[string]bool{
		"https://a.example/v1/mcp": true, "https://a.example/v1/mcp/": true, "https://a.example/v1": true, "https://a.example": true, "HTTPS://A.example/": true,
		"https://a.example/v1/m": false, "https://a.example/v1/mcp/x": false, "https://a.example/V1/mcp": false,
		"http://a.example/v1/mcp": false, "https://b.example/v1/mcp": false, "https://a.example:8443/v1/mcp": false, "https://a.example/v1/mcp#x": false,
		"": false, "/v1/mcp": false, "https://a.example/%": false,
	} {
		if got := covers(resource, "https://a.example/v1/mcp"); got != want {
			t.Errorf("%q: %t", resource, got)
		}
	}
}
