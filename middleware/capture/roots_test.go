package capture

import "testing"

func TestDrivePath(t *testing.T) {
	for path, want := range map[string]string{
		"/c:/Users/ada": `c:\Users\ada`,
		"/C:/Users/ada": `C:\Users\ada`,
		"/c:":           `c:`,
		"/src":          `\src`,
		"":              "",
	} {
		if got := drivePath(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
