package revive

import "testing"

// A server may have read a line of which only the line end was not written, but no line after it.
func TestUnsent(t *testing.T) {
	for _, test := range []struct {
		text    string
		written int
		want    string
	}{
		{"{}\n[]\n", 0, "{}\n[]\n"},
		{"{}\n[]\n", 1, "{}\n[]\n"},
		{"{}\n[]\n", 2, "[]\n"},
		{"{}\n[]\n", 3, "[]\n"},
		{"{}\n[]\n", 5, ""},
		{"{}\n[]\n", 6, ""},
		{"{} \r\n[]\n", 2, "[]\n"},
		{"{}", 1, "{}"},
		{"{}", 2, ""},
		{" \n{}\n", 0, " \n{}\n"},
		{" \n{}\n", 1, "{}\n"},
	} {
		if got := unsent([]byte(test.text), test.written); string(got) != test.want {
			t.Errorf("%d bytes of %q were written: %q is unsent, want %q", test.written, test.text, got, test.want)
		}
	}
}

// A line that a server may have read is not among the sure ones, and is forgotten with the others.
func TestSure(t *testing.T) {
	var l Lines
	l.AddRest([]byte("{}\n[]\n"), 2)
	if got := l.Bytes(); got != 6 || !l.Any() {
		t.Errorf("%d bytes, any: %v", got, l.Any())
	}
	if got := l.Sure(); string(got) != "[]\n" || l.Any() || l.Bytes() != 0 {
		t.Errorf("%q is sure, and %d bytes are left", got, l.Bytes())
	}
	if got := l.Sure(); len(got) > 0 {
		t.Errorf("%q is left", got)
	}
	if l.Add(nil); l.Any() {
		t.Error("there is a line without bytes")
	}
}
