package asks

import (
	"regexp"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

func add(t *Table) (id string, answered *bool) { return addHold(t, false) }

func addHold(t *Table, hold bool) (id string, answered *bool) {
	answered = new(bool)
	id = t.Add(wire.Server, time.Hour, hold, func(m *wire.Message) { *answered = m != nil }, func(string) {})
	return id, answered
}

func reply(id string) *wire.Message {
	return wire.Parse(wire.Server, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":{}}`+"\n"))
}

// A server may answer with the id as a string of digits.
func TestRepliesWithStringIDs(t *testing.T) {
	for spelling, spell := range map[string]func(string) string{
		"number":  func(id string) string { return id },
		"string":  func(id string) string { return `"` + id + `"` },
		"escaped": func(id string) string { return `"\u003` + id + `"` }, // a digit d is U+003d
	} {
		t.Run(spelling, func(t *testing.T) {
			table := New("")
			defer table.Close()
			id, answered := add(table)
			if !regexp.MustCompile(`^[3-8][0-9]{7}000001$`).MatchString(id) {
				t.Fatalf("the first id is %s", id)
			}
			if !table.Owns([]byte(spell(id))) || !table.Swallow(wire.Server, reply(spell(id))) || !*answered {
				t.Errorf("a reply to %s did not reach the request", spell(id))
			}
			if !table.Swallow(wire.Server, reply(spell(id))) {
				t.Error("a second reply is not swallowed")
			}
			id, _ = add(table)
			if table.Take(spell(id)) == nil || table.Take(id) != nil {
				t.Errorf("Take(%s) did not remove the request", spell(id))
			}
		})
	}
}

// A long reply whose id is not known yet may be the reply to a request that was added with hold.
func TestMayAnswer(t *testing.T) {
	table := New("")
	defer table.Close()
	ping, _ := add(table)
	if table.MayAnswer(nil) || !table.MayAnswer([]byte(ping)) || table.MayAnswer([]byte("1")) {
		t.Error("a long reply without an id yet is taken for that to a ping, or its id is not recognized")
	}
	list, _ := addHold(table, true)
	if !table.MayAnswer(nil) {
		t.Error("a long reply may be streamed that could be the reply to a request with hold")
	}
	if table.Take(list); table.MayAnswer(nil) {
		t.Error("long replies are held though the request has its reply")
	}
}

// Numbers that a client counts, and times, are not attache's own ids.
func TestOthersIDs(t *testing.T) {
	table := New("41702983")
	defer table.Close()
	add(table)
	for _, id := range []string{
		``, `1`, `"1"`, `null`, `"`, `41702983`, `"41702983"`, `4170298300000`, `417029830000010`, `"417029830000010"`,
		`41702984000001`, `41702982999999`, `-4170298300001`, `417029830000.1`, `4170298300001e`, `"4170298300000x"`,
		`"41702983000001`, `17954784000000`, `"attache-1"`,
	} {
		if table.Owns([]byte(id)) {
			t.Errorf("%s is attache's own id", id)
		}
	}
}

// After the last id of a prefix, the ids begin with the next prefix. A late reply to an id of the
// first prefix is still recognized.
func TestMoreIDsThanAPrefixHas(t *testing.T) {
	table := New("41702983")
	defer table.Close()
	table.n = perPrefix - 2
	last, _ := add(table)
	if last != `41702983999999` || table.Owns([]byte(`41702984000000`)) {
		t.Fatalf("the last id of the prefix is %s", last)
	}
	next, answered := add(table)
	if next != `41702984000000` || !table.Swallow(wire.Server, reply(`41702984000000`)) || !*answered {
		t.Errorf("the id after it is %s", next)
	}
	if !table.Owns([]byte(last)) || table.Owns([]byte(`41702985000001`)) {
		t.Error("attache's own ids are not exactly those of both prefixes")
	}
}

// A prefix from the recording of an earlier version gives the ids of that recording.
func TestRecordedPrefixes(t *testing.T) {
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
			t.Errorf("%s: 1 is attache's own id", prefix)
		}
		table.Close()
	}
}
