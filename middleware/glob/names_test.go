package glob

import (
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

func TestNames(t *testing.T) {
	var asked []string
	n := Names[string]{All: "all", Find: func(name string) string {
		asked = append(asked, strings.Clone(name))
		return "of " + name
	}}
	long := strings.Repeat("a", maxCachedName)
	for _, test := range []struct{ name, want string }{
		{"get", "of get"}, {"get", "of get"}, {"", "of "}, {"Get", "of Get"}, {"get", "of get"},
		{long, "of " + long}, {long, "of " + long}, {long + "a", "all"}, {long + "a", "all"},
	} {
		if got := n.Of(test.name); got != test.want {
			t.Errorf("of %.20q: %.20q", test.name, got)
		}
	}
	if got, want := strings.Join(asked, " "), "get  Get "+long; got != want {
		t.Errorf("asked for %.40q, want %.40q", got, want)
	}
}

// Names that a client invents use bounded memory.
func TestNamesAreBounded(t *testing.T) {
	n := Names[int]{Find: func(name string) int { return len(name) }}
	for i := range 3 * maxCached {
		name := strconv.Itoa(i)
		if got := n.Of(name); got != len(name) {
			t.Fatalf("%s: %d", name, got)
		}
		if len(n.cache) > maxCached {
			t.Fatalf("%d names are cached", len(n.cache))
		}
	}
}

// A name is often a slice of a frame, whose bytes are reused.
func TestNamesAreCopied(t *testing.T) {
	n := Names[string]{Find: strings.Clone}
	frame := []byte("get")
	n.Of(unsafe.String(&frame[0], len(frame)))
	copy(frame, "put")
	for name := range n.cache {
		if name != "get" {
			t.Errorf("%q is cached", name)
		}
	}
}
