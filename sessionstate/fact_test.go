package sessionstate_test

import (
	"testing"

	"github.com/attache-mcp/attache/sessionstate"
)

func TestSourcesAreOrderedByTrust(t *testing.T) {
	order := []struct {
		source sessionstate.Source
		name   string
	}{
		{sessionstate.None, "none"},
		{sessionstate.GitRoot, "git root"},
		{sessionstate.Roots, "roots"},
		{sessionstate.HostEnvironment, "host environment"},
		{sessionstate.InitializeMeta, "initialize _meta"},
		{sessionstate.RequestMeta, "request _meta"},
		{sessionstate.Credential, "credential"},
		{sessionstate.Operator, "operator"},
	}
	for i, row := range order {
		if i > 0 && row.source <= order[i-1].source {
			t.Errorf("%v is not above %v", row.source, order[i-1].source)
		}
		if got := row.source.String(); got != row.name {
			t.Errorf("String() = %q, want %q", got, row.name)
		}
	}
	if got := (sessionstate.Operator + 1).String(); got != "unknown source" {
		t.Errorf("String() of no source = %q", got)
	}
}

func TestBetter(t *testing.T) {
	meta := sessionstate.Fact{Value: "/meta", Source: sessionstate.RequestMeta}
	laterMeta := sessionstate.Fact{Value: "/later", Source: sessionstate.RequestMeta}
	operator := sessionstate.Fact{Value: "/operator", Source: sessionstate.Operator}
	emptyOperator := sessionstate.Fact{Source: sessionstate.Operator, From: "--workspace"}
	unsourced := sessionstate.Fact{Value: "/unsourced"}
	tests := []struct {
		name       string
		a, b, want sessionstate.Fact
	}{
		{"higher trust stays", operator, meta, operator},
		{"higher trust wins", meta, operator, operator},
		{"equal trust: later wins", meta, laterMeta, laterMeta},
		{"an empty string is absent", meta, emptyOperator, meta},
		{"an empty string is absent, first", emptyOperator, meta, meta},
		{"something is better than nothing", sessionstate.Fact{}, unsourced, unsourced},
		{"nothing", sessionstate.Fact{}, sessionstate.Fact{}, sessionstate.Fact{}},
	}
	for _, test := range tests {
		if got := sessionstate.Better(test.a, test.b); got != test.want {
			t.Errorf("%s: Better(%v, %v) = %v, want %v", test.name, test.a, test.b, got, test.want)
		}
	}
}

func TestNormalizeTrust(t *testing.T) {
	tests := map[string]string{
		"":          "",
		"direct":    "direct",
		" Direct\n": "direct",
		"sandboxed": "sandboxed",
		"SANDBOXED": "sandboxed",
		"trusted":   "sandboxed",
		" ":         "sandboxed",
		"direct,":   "sandboxed",
	}
	for word, want := range tests {
		if got := sessionstate.NormalizeTrust(word); got != want {
			t.Errorf("NormalizeTrust(%q) = %q, want %q", word, got, want)
		}
	}
}
