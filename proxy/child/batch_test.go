package child

import (
	"errors"
	"strings"
	"testing"
)

func TestIsBatchFile(t *testing.T) {
	for path, want := range map[string]bool{
		`C:\node\npx.cmd`: true,
		`C:\NODE\NPX.CMD`: true,
		`run.bat`:         true,
		`run.bat. .`:      true, // Windows ignores these characters at the end
		`run.bat.exe`:     false,
		`cmd`:             false,
		`run.cmd\server`:  false,
	} {
		if isBatchFile(path) != want {
			t.Errorf("isBatchFile(%q) = %v", path, !want)
		}
	}
}

// Arguments are quoted as the standard library of Rust quotes them since CVE-2024-24576. Its
// quoting was tested on Windows.
func TestBatchLine(t *testing.T) {
	for _, tt := range []struct{ arg, want string }{
		{"plain", "plain"},
		{"-y", "-y"},
		{"@cyanheads/git-mcp-server", "@cyanheads/git-mcp-server"},
		{`C:\dir\file`, `C:\dir\file`},
		{"", `""`},
		{"two words", `"two words"`},
		{`C:\dir\`, `"C:\dir\\"`},
		{"a&b", `"a&b"`},
		{"^", `"^"`},
		{"a;b,c=d", `"a;b,c=d"`},
		{`a"b`, `"a""b"`},
		{`a\"b`, `"a\\""b"`},
		{`"&calc.exe`, `"""&calc.exe"`},
		{"%PATH%", `"%%cd:~,%PATH%%cd:~,%"`},
		{"über", "über"},
		{"\u0085", "\"\u0085\""},
	} {
		got, err := batchLine(`C:\Program Files\npx.cmd`, []string{tt.arg, "x"})
		want := `cmd.exe /e:ON /v:OFF /d /c ""C:\Program Files\npx.cmd" ` + tt.want + ` x"`
		if got != want || err != nil {
			t.Errorf("%q:\n got %s, %v\nwant %s", tt.arg, got, err, want)
		}
	}
}

func TestBatchLineRefuses(t *testing.T) {
	for _, arg := range []string{"two\nlines", "\r", "a\x00"} {
		if _, err := batchLine("x.cmd", []string{arg}); !errors.Is(err, errBatchLineEnd) {
			t.Errorf("%q: %v", arg, err)
		}
	}
	const around = len(`cmd.exe /e:ON /v:OFF /d /c ""x.cmd" "`)
	if line, err := batchLine("x.cmd", []string{strings.Repeat("é", maxBatchLine-around)}); err != nil {
		t.Errorf("the longest line: %d bytes, %v", len(line), err)
	}
	if _, err := batchLine("x.cmd", []string{strings.Repeat("x", maxBatchLine-around+1)}); !errors.Is(err, errBatchTooLong) {
		t.Errorf("a longer line: %v", err)
	}
}

// No argument puts a special character of cmd.exe outside of quotes, as cmd.exe reads them.
func FuzzBatchLine(f *testing.F) {
	for _, seed := range []string{"a&b", `"&x`, `\"|`, "%PATH%", `""^`, `a\\" > b`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		line, err := batchLine("x.cmd", []string{arg})
		if err != nil {
			return
		}
		line = strings.TrimSuffix(strings.TrimPrefix(line, `cmd.exe /e:ON /v:OFF /d /c "`), `"`)
		line = strings.ReplaceAll(line, "%%cd:~,%", "")
		quoted := false
		for _, r := range line {
			switch {
			case r == '"':
				quoted = !quoted
			case r == '%':
				t.Fatalf("%q: a bare %% in %s", arg, line)
			case !quoted && strings.ContainsRune("&|<>()^;,='!\t\n", r):
				t.Fatalf("%q: %q is outside of quotes in %s", arg, r, line)
			}
		}
		if quoted {
			t.Fatalf("%q: a quote is not closed in %s", arg, line)
		}
	})
}
