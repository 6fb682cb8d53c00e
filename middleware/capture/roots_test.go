package capture

import "testing"

// A root and the working directory on the same drive have the same letter.
func TestDrivePath(t *testing.T) {
	for path, want := range map[string]string{
		"/c:/Users/ada": `C:\Users\ada`,
		"/C:/Users/ada": `C:\Users\ada`,
		"/c:":           `C:`,
		"/src":          `\src`,
		"":              "",
	} {
		if got := drivePath(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
