package serve

import (
	"bytes"
	"testing"
)

// A line that arrives in parts is named once.
func TestNamedWriter(t *testing.T) {
	var out bytes.Buffer
	w := &namedWriter{to: &out, name: "git: "}
	for _, part := range []string{"one\nt", "w", "", "o\n", "\nthree"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("Write(%q) = %d, %v", part, n, err)
		}
	}
	if got, want := out.String(), "git: one\ngit: two\ngit: \ngit: three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
