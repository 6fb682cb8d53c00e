package callid

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/kept"
)

// idOfLength returns a string id whose raw form has n bytes.
func idOfLength(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// A value is found by its id, whatever its length, and no other id of that length finds it.
func TestIndex(t *testing.T) {
	x := NewIndex[string]()
	ids := []string{"1", `"1"`}
	for n := 3; n <= inlineLen+2; n++ {
		ids = append(ids, idOfLength(n))
	}
	get := func(id string) *string {
		k, long := Of([]byte(id))
		return x.Get(&k, long)
	}
	set := func(id string, v *string) {
		k, long := Of([]byte(id))
		x.Set(&k, long, v)
	}
	for _, id := range ids {
		if v := get(id); v != nil {
			t.Errorf("%s finds %s", id, *v)
		}
		set(id, &id)
	}
	count := 0
	x.All(func(*string) bool { count++; return true })
	if count != len(ids) {
		t.Errorf("%d values of %d", count, len(ids))
	}
	count = 0
	x.All(func(*string) bool { count++; return false })
	if count != 1 {
		t.Errorf("%d values after the first was enough", count)
	}
	for _, id := range ids {
		if v := get(id); v == nil || *v != id {
			t.Errorf("%s finds %v", id, v)
		}
		set(id, nil)
		if v := get(id); v != nil {
			t.Errorf("%s finds %s after it was removed", id, *v)
		}
	}
}

// An id with up to inlineLen bytes is kept without allocating.
func TestLongestKey(t *testing.T) {
	for n, want := range map[int]string{inlineLen: "", inlineLen + 1: idOfLength(inlineLen + 1)} {
		k, long := Of([]byte(idOfLength(n)))
		if long != want || want == "" && string(k.Clone()) != idOfLength(n) {
			t.Errorf("an id of %d bytes: %q, %q", n, k.Clone(), long)
		}
	}
}

// Lookup finds an id by its Text in every spelling of the id, and finds nothing else.
func TestLookup(t *testing.T) {
	long := idOfLength(kept.Max + 1)
	m := map[string]int{}
	for i, id := range []string{"1", `"1"`, `"a/b"`, `"\ud800"`, `"\ud801"`, idOfLength(kept.Max), long} {
		m[Text([]byte(id))] = i + 1
	}
	for id, want := range map[string]int{
		"": 0, "1": 1, `"1"`: 2, `"\u0031"`: 2, `"a\/b"`: 3, `"\ud800"`: 4, `"\ud801"`: 5, `"\ufffd"`: 0, "1.0": 0,
		idOfLength(kept.Max): 6, long: 7, idOfLength(kept.Max + 2): 0,
	} {
		if got := Lookup(m, []byte(id)); got != want {
			t.Errorf("%.20s finds %d, want %d", id, got, want)
		}
	}
	if n := len(Text([]byte(long))); n > kept.Max {
		t.Errorf("a long id is kept in %d bytes", n)
	}
	if n := testing.AllocsPerRun(100, func() { Lookup(m, []byte("1")) }); n > 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}

func TestClip(t *testing.T) {
	fits := idOfLength(100)
	for id, want := range map[string]string{fits: fits, idOfLength(101): fits[:99] + "x…"} {
		if got := Clip([]byte(id)); got != want {
			t.Errorf("an id of %d bytes is logged as %s", len(id), got)
		}
	}
}

func TestClean(t *testing.T) {
	for id, want := range map[string]bool{`1`: true, `"a"`: true, "\"a\rb\"": false, "1\r": true, "\"\xff\"": false, `"a`: false} {
		if got := Clean([]byte(id)); (got != nil) != want || want && string(got) != id {
			t.Errorf("%q becomes %q", id, got)
		}
	}
}
