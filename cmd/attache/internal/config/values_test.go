package config

import "testing"

func TestMetaPathsText(t *testing.T) {
	paths := []MetaPath{{"a.b"}, {"c", "d"}}
	if got, want := (metaPaths{&paths}).String(), "[a.b, [c, d]]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
