package serve

import (
	"bytes"
	"io"
	"sync"
	"testing"
)

// A lineWriter serialises writes.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// Each line is named once, even if it arrives in parts. Lines of several processes are not mixed, not
// even if one of them is incomplete.
func TestStderrOfProcesses(t *testing.T) {
	var out bytes.Buffer
	shared := &sharedStderr{to: &out}
	git, shop := &processStderr{to: shared, name: "git: "}, &processStderr{to: shared, name: "shop: "}
	for _, part := range []struct {
		w    *processStderr
		text string
	}{
		{git, "one\nt"}, {git, "w"}, {git, ""}, {git, "o\n"}, {git, "\nthree"},
		{shop, ""}, {shop, "four\nfi"}, {git, " and more\n"}, {shop, "ve\n"}, {shop, "six\n"},
	} {
		if n, err := part.w.Write([]byte(part.text)); n != len(part.text) || err != nil {
			t.Errorf("Write(%q) = %d, %v", part.text, n, err)
		}
	}
	const want = "git: one\ngit: two\ngit: \ngit: three\nshop: four\nshop: fi\ngit:  and more\nshop: ve\nshop: six\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
