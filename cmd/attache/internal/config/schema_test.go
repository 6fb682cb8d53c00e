package config

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	diff "github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// compiled returns the schema as an editor would read it.
func compiled(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(Schema())
	check(t, err)
	var schema jsonschema.Schema
	check(t, json.Unmarshal(text, &schema))
	resolved, err := schema.Resolve(nil)
	check(t, err)
	return resolved
}

// The schema and the reader accept and refuse the same files, as far as a schema can express the
// mistake.
func TestSchemaAgreesWithReader(t *testing.T) {
	schema := compiled(t)
	full, err := os.ReadFile("testdata/full.yaml")
	check(t, err)
	for _, text := range []string{
		string(full), "session:", "policy: {url: https://policy.example/effective}", "arguments: []", "limits: {hold: 8388608}",
		"sesion: {}", "session: {idd: x}", "session: {id: 1}", "log: {level: loud}", "limits: {in_flight: 0}", "limits: {in_flight: x}",
		"session: {env_prefixes: A}", "session: {meta: {workspace: [[]]}}", "session: {meta: {workspace: [1]}}", "rewrite: []",
		"identity: {jwt: {issuer: [a]}}", "identity: {jwt: {secret: x}}", "arguments: [{}]", "arguments: [{tools: [], argument: a, value: session.id}]",
		"arguments: [{tools: [a], argument: a, value: ''}]", "arguments: [{tools: [a], argument: a, value: session.id, mode: pinn}]",
		"arguments: [{tools: [a], argument: a, value: principal.tenant, mode: pin}, {tools: [a], argument: b, mode: forbid, when: 'true'}]",
		"server: {env: {A-B: x}}", "server: {env: {A: []}}", "policy: {url: 'ftp://x'}", "session: {roots: 'yes'}", "arguments:", "- a",
		"briefing: {channels: [smoke]}", "access: {default: maybe}", "access: {rules: [{}]}", "access: {rules: [{tools: [a], when: 'true'}]}",
		"access: {rates: [{tools: [a], per: user, limit: 1/s}]}", "access: {rates: [{tools: [a], per: user, limit: x}]}", "access: {rates: [{tools: [a], limit: 1/s}]}",
		"include:", "servers:", "servers: {git: }", "servers: {git: {}}", "servers: {git: {match: }}", "servers: {git: {server: }}",
	} {
		_, problems := read(text)
		var value any
		check(t, yaml.Unmarshal([]byte(text), &value))
		plain, err := json.Marshal(value)
		check(t, err)
		value = nil
		check(t, json.Unmarshal(plain, &value))
		if refused := schema.Validate(value); (refused == nil) != (len(problems) == 0) {
			t.Errorf("%.60q: schema says %v, reader says %v", text, refused, problems)
		}
	}
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		for name, inner := range properties {
			inner := inner.(map[string]any)
			if inner["properties"] == nil && inner["description"] == nil {
				t.Errorf("%s%s has no description", path, name)
			}
			walk(path+name+".", inner)
		}
	}
	walk("", Schema())
}

func TestSchemaNamesDefaults(t *testing.T) {
	for path, want := range map[string]any{
		"access.default":                    "allow",
		"access.rates[].burst":              nil, // the limit
		"access.hide":                       true,
		"agents.*.allow.trust":              []any{"direct", "sandboxed"},
		"agents.*.on_parent_end":            "finish",
		"agents.*.time_limit":               "30m",
		"agents.*.trust":                    nil,
		"arguments[].mode":                  "fill",
		"arguments[].required":              nil,
		"briefing.channels":                 nil, // what the client shows
		"limits.hold":                       "8MiB",
		"limits.in_flight":                  100000.0,
		"session.env_prefixes":              []any{"ATTACHE"},
		"session.id":                        nil,
		"servers.*.briefing.wait":           nil, // that of the configuration
		"servers.*.arguments[].mode":        "fill",
		"servers.*.server.timeouts.connect": nil,
	} {
		text, err := json.Marshal(Schema())
		check(t, err)
		var at map[string]any
		check(t, json.Unmarshal(text, &at))
		for name := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ".[]"), ".") {
			switch name {
			case "*":
				at = at["additionalProperties"].(map[string]any)
			case "[]":
				at = at["items"].(map[string]any)
			default:
				at = at["properties"].(map[string]any)[name].(map[string]any)
			}
		}
		if d := diff.Diff(want, at["default"]); d != "" {
			t.Errorf("default of %s: %s", path, d)
		}
	}
}
