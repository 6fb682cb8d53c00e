package serve

import (
	"bytes"
	"io"
	"testing"
)

// locked returns a writer to w that several goroutines may use.
func locked(w io.Writer) io.Writer { return &processStderr{to: &sharedStderr{to: w}} }

// Each line begins with the name of its process, once, even if the line arrives in parts. A line of
// another process is never appended to an incomplete one.
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
