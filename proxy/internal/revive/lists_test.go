package revive

import (
	"slices"
	"testing"

	"github.com/attache-mcp/attache/proxy/wire"
)

// Clients take an empty cursor, or null, for the end of a list, and so does a list that is compared.
func TestEmptyCursor(t *testing.T) {
	for _, cursor := range []string{`""`, "null"} {
		var p Pages
		reply := wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}],"nextCursor":`+cursor+`}}`))
		if next := p.Page("tools/list", nil, reply); next != nil || !slices.Equal(p.Methods(), []string{"tools/list"}) {
			t.Errorf("%s: got the cursor %q and the lists %q", cursor, next, p.Methods())
		}
	}
}

// A list is compared when all of its pages have been read one after the other, and only the lists that differ
// have changed.
func TestPages(t *testing.T) {
	const tools, prompts, resources = "tools/list", "prompts/list", "resources/list"
	page := func(p *Pages, method, cursor, result string) {
		var at []byte
		if cursor != "" {
			at = []byte(cursor)
		}
		p.Page(method, at, wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":1,"result":`+result+"}\n")))
	}
	var r Record
	page(&r.lists, tools, "", `{"tools":[{"name":"a"}],"nextCursor":"1"}`)
	page(&r.lists, tools, `"1"`, `{"tools":[{"name":"b"}]}`)
	page(&r.lists, resources, "", `{"resources":[]}`)
	page(&r.lists, prompts, "", `{"prompts":[{"name":"a"}]}`)
	page(&r.lists, "resources/templates/list", "", `{"resourceTemplates":{}}`)
	if got := r.Lists(); !slices.Equal(got, []string{prompts, resources, tools}) {
		t.Errorf("the lists are %q", got)
	}
	for _, test := range []struct {
		name    string
		pages   [][3]string
		changed []string
	}{
		{"the same on one page", [][3]string{{tools, "", `{"tools":[{"name":"a"},{"name":"b"}]}`}, {prompts, "", `{"prompts":[{"name":"a"}]}`}}, nil},
		{"another order", [][3]string{{tools, "", `{"tools":[{"name":"b"},{"name":"a"}]}`}, {prompts, "", `{"prompts":[{"name":"b"}]}`}}, []string{prompts, tools}},
		{"not to the end", [][3]string{{tools, "", `{"tools":[],"nextCursor":"1"}`}}, nil},
		{"another page between", [][3]string{{tools, "", `{"tools":[],"nextCursor":"1"}`}, {tools, `"2"`, `{"tools":[]}`}, {tools, `"1"`, `{"tools":[]}`}}, nil},
		{"no list", [][3]string{{tools, "", `{"tools":{}}`}}, nil},
		{"without entries", [][3]string{{tools, "", `{"tools":[]}`}}, []string{tools}},
	} {
		var now Pages
		for _, p := range test.pages {
			page(&now, p[0], p[1], p[2])
		}
		var got []string
		for _, c := range r.Compare(now) {
			got = append(got, c.method)
		}
		if !slices.Equal(got, test.changed) {
			t.Errorf("%s: %q have changed", test.name, got)
		}
	}
}
