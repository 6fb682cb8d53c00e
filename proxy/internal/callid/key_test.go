package callid

import (
	"strings"
	"testing"
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
