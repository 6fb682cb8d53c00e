package arguments

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A rule does not fill a string that the argument's schema refuses: the schema in the list and the
// call pass unchanged, and the log, the call's notes and doctor give the reason. A pin sets the
// argument nevertheless.
func TestLimits(t *testing.T) {
	const wrongPattern, unread = "the value does not match the argument's pattern", "attache cannot check the value by the argument's "
	for _, test := range []struct{ value, property, why string }{
		{"/src/shop", `{"type":"string","pattern":"^/"}`, ""},
		{"/src/shop", `{"pattern":"shop"}`, ""}, // a pattern is not anchored
		{"/src/shop", `{"type":"string","pattern":"^[a-z-]+$"}`, wrongPattern},
		{"/src/shop", `{"pattern":"^[A-Z]:"}`, wrongPattern},
		{"/src/shop", `{"pattern":"^(?!/etc)"}`, unread + "pattern"},
		{"/src/shop", `{"pattern":"^\\u002f"}`, unread + "pattern"},
		{"/src/shop", `{"pattern":"("}`, unread + "pattern"},
		{"/src/shop", `{"pattern":1}`, unread + "pattern"},
		{"/src/shop", `{"pattern":"^/((((.{9}){9}){9})*)*"}`, ""},
		{"/src/shop", `{"minLength":1}`, ""},
		{"/src/shop", `{"minLength":9}`, ""},
		{"/src/shop", `{"minLength":10}`, "the value is shorter than the argument's minLength"},
		{"/src/shop", `{"minLength":"1"}`, unread + "minLength"},
		{"/src/shop", `{"maxLength":9.0}`, ""},
		{"/src/shop", `{"maxLength":8}`, "the value is longer than the argument's maxLength"},
		{"/src/shop", `{"maxLength":0}`, "the value is longer than the argument's maxLength"},
		{"/src/shop", `{"maxLength":null}`, unread + "maxLength"},
		{"/src/\U0001F6D2", `{"minLength":6,"maxLength":7}`, ""}, // 6 characters, 7 units of UTF-16
		{"/src/\U0001F6D2", `{"minLength":7}`, "the value is shorter than the argument's minLength"},
		{"/src/\U0001F6D2", `{"maxLength":6}`, "the value is longer than the argument's maxLength"},
		{"/src/shop", `{"format":"directory-path"}`, ""},
		{"/src/shop", `{"format":"uri"}`, "the value does not have the argument's format, uri"},
		{"/src/shop", `{"format":"uuid"}`, "the value does not have the argument's format, uuid"},
		{"/src/shop", `{"anyOf":[{"type":"string","format":"uuid"},{"type":"null"}]}`, "the value does not have the argument's format, uuid"},
		{"/src/shop", `{"anyOf":[{"type":"string","format":"uuid"},{"type":"string","pattern":"^/"}]}`, ""},
		{"/src/shop", `{"pattern":"^x","oneOf":[{"type":"string"},{"type":"integer"}]}`, wrongPattern},
		{"/src/shop", `{"anyOf":[{"type":"string"}],"oneOf":[{"type":"string","maxLength":3},{"type":"null"}]}`, "the value is longer than the argument's maxLength"},
		{"/src/shop", `{"type":"integer"}`, textOtherType},
	} {
		for _, path := range [][]string{{"p"}, {"o", "p"}} {
			for _, required := range []string{"", `,"required":["p"]`} {
				t.Run(fmt.Sprint(test.value, test.property, path, required), func(t *testing.T) {
					schema := `{"type":"object","properties":{"p":` + test.property + `}` + required + `}`
					empty := `{}`
					if len(path) > 1 {
						schema, empty = `{"type":"object","properties":{"o":`+schema+`}}`, `{"o":{}}`
					}
					testLimit(t, path, test.value, schema, empty, test.why)
				})
			}
		}
	}
}

func testLimit(t *testing.T, path []string, value, schema, empty, why string) {
	for _, text := range []string{"session.id", `"` + value + `"`} {
		fill := Rule{Tools: []string{"t"}, Argument: path, Value: compile(text, expression.Any)}
		x := newToolTest(t, fill)
		x.session = value
		var log bytes.Buffer
		x.conn.log = slog.New(slog.NewTextHandler(&log, nil))
		var skipped string
		x.listener = func(_ *middleware.Call, n middleware.Note) {
			if n.Act == middleware.Skipped {
				skipped = n.Why
			}
		}
		if shown := x.shown(schema); why != "" && shown != schema || why == "" && strings.Contains(shown, "required") {
			t.Errorf("%s: shown is %s", text, shown)
		}
		want := empty
		if why == "" {
			want = strings.Replace(empty, "{}", `{"p":"`+value+`"}`, 1)
		}
		for range 2 {
			if sent := x.call(empty); sent != want || skipped != why {
				t.Errorf("%s: sent is %s, want %s; skipped because %q, want %q", text, sent, want, skipped, why)
			}
		}
		if logged := strings.Count(log.String(), "its schema does not take the rule's value"); logged != min(1, len(why)) || !strings.Contains(log.String(), why) {
			t.Errorf("%s: the log is %s", text, &log)
		}
		view := &sessionstate.Context{Session: sessionstate.Fact{Value: value, Source: sessionstate.Operator}}
		tool := &middleware.Tool{Name: "t", InputSchema: []byte(schema)}
		if got := fill.Misfit(tool, view, ""); got != why {
			t.Errorf("%s: Misfit returned %q, want %q", text, got, why)
		}
		fill.Mode = Pin
		if x := newToolTest(t, fill); !strings.Contains(x.call(empty), `"p":`) {
			t.Errorf("%s: it is not pinned", text)
		}
	}
}

// A number is filled only if it is in the range of the argument.
func TestRanges(t *testing.T) {
	for _, test := range []struct{ property, value, why string }{
		{`{"type":"integer","minimum":1,"maximum":100}`, "100", ""},
		{`{"type":"integer","minimum":1,"maximum":100}`, "101", "the value is above the argument's maximum"},
		{`{"type":"integer","minimum":1,"maximum":100}`, "0", "the value is below the argument's minimum"},
		{`{"type":"integer","minimum":1,"maximum":100}`, "1", ""},
		{`{"type":"number","exclusiveMaximum":1}`, "1", "the value is above the argument's exclusiveMaximum"},
		{`{"type":"number","exclusiveMaximum":1}`, "0.5", ""},
		{`{"oneOf":[{"type":"integer","maximum":5},{"type":"null"}]}`, "6", "the value is above the argument's maximum"},
		{`{"type":"integer"}`, "1.5", "the argument takes integers only"},
		{`{"type":"integer"}`, "2.0", ""},
		{`{"type":["integer","null"]}`, "1.5", "the argument takes integers only"},
		{`{"type":"number","exclusiveMinimum":0}`, "0.5", ""},
		{`{"type":"number","exclusiveMinimum":0}`, "0", "the value is below the argument's exclusiveMinimum"},
		{`{"type":"number","maximum":1,"exclusiveMaximum":true}`, "1", ""}, // of an old dialect
		{`{"anyOf":[{"type":"integer","maximum":5},{"type":"null"}]}`, "5", ""},
		{`{"anyOf":[{"type":"integer","maximum":5},{"type":"null"}]}`, "6", "the value is above the argument's maximum"},
		{`{"anyOf":[{"type":"integer","maximum":5},{"type":"number","minimum":9}]}`, "9.5", ""},
	} {
		rule := Rule{Tools: []string{"t"}, Argument: []string{"p"}, Value: compile(test.value, expression.Any)}
		schema := `{"type":"object","properties":{"p":` + test.property + `},"required":["p"]}`
		if got := rule.Misfit(&middleware.Tool{Name: "t", InputSchema: []byte(schema)}, &sessionstate.Context{}, ""); got != test.why {
			t.Errorf("%s: %s: %q, want %q", test.property, test.value, got, test.why)
		}
		x := newToolTest(t, rule)
		if shown := x.shown(schema); (shown == schema) != (test.why != "") {
			t.Errorf("%s: %s: shown is %s", test.property, test.value, shown)
		}
		if sent := x.call(`{}`); (sent == `{}`) != (test.why != "") {
			t.Errorf("%s: %s: sent is %s", test.property, test.value, sent)
		}
	}
}

// Misfit reports a pin only if the argument certainly does not accept its value.
func TestMisfitOfPin(t *testing.T) {
	for property, want := range map[string]string{
		`{"type":"string"}`:                     "",
		`{"type":"boolean"}`:                    textOtherType,
		`{"type":["string","null"]}`:            "",
		`{"type":"string","enum":["acme","x"]}`: "",
		`{"type":"string","enum":["x"]}`:        textNotListed,
		`{"const":"x"}`:                         textNotListed,
		`{"$ref":"#/$defs/P"}`:                  "",
		`{"anyOf":[{"type":"integer"}]}`:        "",
		`true`:                                  "",
	} {
		pin := Rule{Tools: []string{"t"}, Argument: []string{"p"}, Mode: Pin, Value: compile(`"acme"`, expression.Any)}
		tool := &middleware.Tool{Name: "t", InputSchema: []byte(`{"type":"object","properties":{"p":` + property + `}}`)}
		if got := pin.Misfit(tool, &sessionstate.Context{}, ""); got != want {
			t.Errorf("%s: %q, want %q", property, got, want)
		}
	}
}

// A value that only a call determines may not fit the argument. Then the schema does not change.
func TestLimitsOfLateValues(t *testing.T) {
	for property, changed := range map[string]bool{`{"type":"string","minLength":1}`: true, `{"type":"string","pattern":"^/"}`: false} {
		schema := `{"type":"object","properties":{"p":` + property + `,"q":{"type":"string"}},"required":["p"]}`
		x := newToolTest(t, Rule{Tools: []string{"t"}, Argument: []string{"p"}, Value: compile("arguments.q", expression.Any)})
		if shown := x.shown(schema); (shown != schema) != changed {
			t.Errorf("%s: shown is %s", property, shown)
		}
		for q, sent := range map[string]string{"/x": `{"q":"/x","p":"/x"}`, "x": `{"q":"x","p":"x"}`} {
			if want := sent; q == "x" && !changed {
				sent = strings.Replace(want, `,"p":"x"`, "", 1)
			}
			if got := x.call(`{"q":"` + q + `"}`); got != sent {
				t.Errorf("%s: sent is %s, want %s", property, got, sent)
			}
		}
	}
}

// A tool is shown as it is if attache cannot read the pattern of the argument.
func TestUnreadPattern(t *testing.T) {
	x := newToolTest(t, Rule{Tools: []string{"t"}, Argument: []string{"p"}, Value: compile(`"a"`, expression.Any)})
	schema := `{"properties":{"p":{"type":"string","pattern":"(?:abcdefghij){500}"}},"required":["p"]}`
	if shown := x.shown(schema); shown != schema {
		t.Errorf("shown is %.200s", shown)
	}
}
