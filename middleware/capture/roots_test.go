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

// A front on another system gets the paths of clients on Windows, too.
func TestFilePathWithDrive(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///c%3A/Users/ada":  `c:\Users\ada`, // VS Code
		"file:///C:/Users/a%20da": `C:\Users\a da`,
		`file://C:\Users\a%20da`:  `C:\Users\a%20da`, // Claude Code 2.1.112 does not encode it
		"file://C:/Users/ada":     `C:\Users\ada`,
		"file://c:80/src":         "",
		"file://host/src":         "",
		`C:\Users\ada`:            "",
	} {
		if got := filePath(uri); got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
}

func TestIsInside(t *testing.T) {
	for _, row := range []struct {
		path, dir string
		want      bool
	}{
		{`C:\src\app`, `C:\src`, true},
		{`C:\src\.claude\worktrees\fix`, `C:\src/.claude/worktrees`, true},
		{`C:\srcs`, `C:\src`, false},
		{`C:\src\..\x`, `C:\src`, false},
		{`D:\src\app`, `C:\src`, false},
	} {
		if got := isInside(row.path, row.dir); got != row.want {
			t.Errorf("%s in %s: %t", row.path, row.dir, got)
		}
	}
}
