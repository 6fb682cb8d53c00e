package logging

import (
	"bytes"
	"testing"
)

// Each line begins with the name of its process, once, even if the line arrives in parts. A line of
// another process is never appended to an incomplete one.
func TestStderrOfProcesses(t *testing.T) {
	var out bytes.Buffer
	log := NewStderr(&out)
	git, shop := log.Beside("git: "), log.Beside("shop: ")
	for _, part := range []struct {
		w    *Stderr
		text string
	}{
		{git, "one\nt"}, {git, "w"}, {git, ""}, {git, "o\n"}, {git, "\nthree"},
		{shop, ""}, {shop, "four\nfi"}, {git, " and more\n"}, {shop, "ve\n"}, {shop, "six\n"},
		{git, "ei"}, {log, "{}\n"}, {git, "ght\n"},
	} {
		if n, err := part.w.Write([]byte(part.text)); n != len(part.text) || err != nil {
			t.Errorf("Write(%q) = %d, %v", part.text, n, err)
		}
	}
	const want = "git: one\ngit: two\ngit: \ngit: three\nshop: four\nshop: fi\ngit:  and more\nshop: ve\nshop: six\n" +
		"git: ei\n{}\ngit: ght\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
