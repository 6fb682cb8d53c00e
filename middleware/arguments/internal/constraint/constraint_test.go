package constraint

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

func TestFormats(t *testing.T) {
	for format, examples := range map[string][2][]string{
		"uri": {{"https://example.com/a?b#c", "file:///src/shop", "urn:x:y", "http://[::1]/"},
			{"", "/src/shop", `C:\src`, "C:/src", "https://", "x:", "https://a b/", "//host/path", "a/b:c", "https://\u00e4/"}},
		"uri-reference": {{"/src/shop", "https://example.com/", "a"}, {`C:\src`, "a b", "%zz"}},
		"uuid":          {{"123e4567-e89b-12d3-a456-426614174000"}, {"acme", "123e4567e89b12d3a456426614174000", "urn:uuid:123e4567-e89b-12d3-a456-426614174000"}},
		"email":         {{"ada@example.com", "a.b+c@x-y.example"}, {"ada", "ada@", "ada@localhost", "Ada <ada@example.com>", "a..b@example.com", ".a@example.com"}},
		"hostname":      {{"acme", "a-b.example.com"}, {"/src/shop", "a_b", "-a", "a-", "a..b", strings.Repeat("a", 64), strings.Repeat("a.", 126) + "aa"}},
		"ipv4":          {{"127.0.0.1"}, {"::1", "127.1", "127.0.0.01", "127.0.0.1/8"}},
		"ipv6":          {{"::1", "fe80::1"}, {"127.0.0.1", "fe80::1%eth0", "[::1]"}},
		"date-time":     {{"2026-01-31T10:00:00Z", "2026-01-31T10:00:00.5+01:00"}, {"2026-01-31", "2026-02-30T10:00:00Z", "2026-01-31T10:00:00", "2026-01-31 10:00:00Z", "2026-01-31T1:00:00Z", "2026-01-31T10:00:00,5Z"}},
		"date":          {{"2026-01-31"}, {"2026-02-30", "31.1.2026"}},
		"time":          {{"10:00:00Z", "10:00:00+01:00"}, {"10:00:00", "25:00:00Z"}},
		"duration":      {{"P1D", "PT5M", "P2W", "P1Y2M3DT4H5M6S"}, {"P", "PT", "P1DT", "1h", "P1D2W"}},
		"json-pointer":  {{"", "/src/shop", "/a~0b"}, {"src", "/a~b"}},
	} {
		is := formats()[format]
		for _, text := range examples[0] {
			if !is(text) {
				t.Errorf("%q is not accepted as %s", text, format)
			}
		}
		for _, text := range examples[1] {
			if is(text) {
				t.Errorf("%q is accepted as %s", text, format)
			}
		}
	}
}

// A server's pattern uses bounded memory: one that would use more is not read, and then no string
// is known to fit.
func TestPatternsAreBounded(t *testing.T) {
	for _, test := range []struct {
		pattern string
		read    bool
	}{
		{`(?:abcdefgh){500}`, true},
		{`(?:abcdefghij){500}`, false},
		{`(?:(?:a{10}){10}b){10}`, true},
		{`(?:(?:a{10}){10}b){50}`, false},
		{`^(?:` + strings.Repeat("a?", 800) + `){2}$`, true},
		{`^(?:` + strings.Repeat("a?", 2000) + `){2}$`, false},
		{`a{900,}`, true},
		{`(?:abcdefghij){900,}`, false},
		{`[\\w.]{400}`, true},
		{`\\pL{100}`, false}, // a class with hundreds of ranges
		{strings.Repeat("a", maxPattern-2), true},
		{strings.Repeat("a", maxPattern-1), false},
	} {
		raw := []byte(`"` + test.pattern + `"`)
		if got := CompilePattern(wire.Value{Raw: raw}) != nil; got != test.read {
			t.Errorf("%.40s: read is %t", test.pattern, got)
		}
		limit := Schema{Value: wire.Value{Raw: []byte(`{"type":"string","pattern":` + string(raw) + `}`)}}.Limit()
		if !test.read && limit.Refuses("a") == "" {
			t.Errorf("%.40s: a text is known to fit", test.pattern)
		}
	}
}

// All references of a schema count, not only the first.
func TestReferences(t *testing.T) {
	for schema, want := range map[string][2]bool{
		`{}`:                                   {},
		`{"a":{"$ref":"#/$defs/x"}}`:           {},
		`{"a":{"$ref":"https://x.example/s"}}`: {false, true},
		`{"a":{"$ref":"#/$defs/x"},"b":{"$dynamicRef":"other.json"}}`: {false, true},
		`{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#"}}`:                 {true, false},
	} {
		if around, outside := References([]byte(schema), "tenant"); around != want[0] || outside != want[1] {
			t.Errorf("%s: around %v, outside %v", schema, around, outside)
		}
	}
}
