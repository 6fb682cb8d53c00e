package setting

import "testing"

func TestPathsText(t *testing.T) {
	paths := [][]string{{"a.b"}, {"c", "d"}}
	if got, want := Paths(&paths).String(), "[a.b, [c, d]]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
