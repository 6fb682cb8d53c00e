package asks

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

func add(t *Table) (id string, answered *bool) {
	answered = new(bool)
	id = t.Add(wire.Server, time.Hour, func(m *wire.Message) { *answered = m != nil }, func(string) {})
	return id, answered
}

func reply(id string) *wire.Message {
	var m wire.Message
	m.Reset(wire.Server, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n"))
	m.LookEnvelope()
	return &m
}

// Servers made with Effect answer an id that is a string of digits with the number.
func TestRepliesUnderTheNumber(t *testing.T) {
	for spelling, spell := range map[string]func(string) string{
		"string":  func(id string) string { return id },
		"number":  func(id string) string { return strings.Trim(id, `"`) },
		"escaped": func(id string) string { return `"\u003` + id[1:] }, // a digit d is U+003d
	} {
		t.Run(spelling, func(t *testing.T) {
			table := New("")
			defer table.Close()
			id, answered := add(table)
			if !regexp.MustCompile(`^"[3-8][0-9]{9}000001"$`).MatchString(id) {
				t.Fatalf("the first id is %s", id)
			}
			if !table.Owns([]byte(spell(id))) || !table.Swallow(wire.Server, reply(spell(id))) || !*answered {
				t.Errorf("a reply to %s did not reach the request", spell(id))
			}
			if !table.Swallow(wire.Server, reply(spell(id))) {
				t.Error("a second reply is for the client")
			}
			id, _ = add(table)
			if table.Take(spell(id)) == nil || table.Take(id) != nil {
				t.Errorf("%s did not take the request out", spell(id))
			}
		})
	}
}

// Nothing that a client counts, or the time, is an id of attache's own.
func TestOthersIDs(t *testing.T) {
	table := New("4170298356")
	defer table.Close()
	add(table)
	for _, id := range []string{
		``, `1`, `"1"`, `null`, `"`, `4170298356`, `"4170298356"`, `417029835600000`, `41702983560000010`, `"41702983560000010"`,
		`4170298357000001`, `4170298355999999`, `-417029835600001`, `41702983560000.1`, `417029835600001e`, `"417029835600000x"`,
		`"4170298356000001`, `1795478400000000`, `"attache-1"`,
	} {
		if table.Owns([]byte(id)) {
			t.Errorf("%s counts as an id of attache's own", id)
		}
	}
}

// After the last id of a prefix, the ids begin with the next prefix. A late reply to an id of the
// first prefix still counts.
func TestMoreIDsThanAPrefixHas(t *testing.T) {
	table := New("4170298356")
	defer table.Close()
	table.n = perPrefix - 2
	last, _ := add(table)
	if last != `"4170298356999999"` || table.Owns([]byte(`4170298357000000`)) {
		t.Fatalf("the last id of the prefix is %s", last)
	}
	next, answered := add(table)
	if next != `"4170298357000000"` || !table.Swallow(wire.Server, reply(`4170298357000000`)) || !*answered {
		t.Errorf("the id after it is %s", next)
	}
	if !table.Owns([]byte(last)) || table.Owns([]byte(`4170298358000001`)) {
		t.Error("the ids of attache's own are those of both prefixes, and no others")
	}
}

// A recording of an earlier attache has another prefix, which makes the ids it has.
func TestOtherPrefixes(t *testing.T) {
	for prefix, want := range map[string]string{
		"attache-1af32d18d367cfd8-": `"attache-1af32d18d367cfd8-1"`,
		"own-":                      `"own-1"`,
		"0000000000":                `"00000000001"`,
		"own-567890":                `"own-5678901"`,
	} {
		table := New(prefix)
		id, answered := add(table)
		if id != want || !table.Swallow(wire.Server, reply(id)) || !*answered {
			t.Errorf("%s: the first id is %s", prefix, id)
		}
		if table.Owns([]byte(`1`)) || table.Owns([]byte(`"1"`)) {
			t.Errorf("%s: 1 is an id of attache's own", prefix)
		}
		table.Close()
	}
}
