package child

import (
	"errors"
	"strings"
	"unicode/utf16"
)

// maxBatchLine is how long a line the Windows command interpreter takes, in UTF-16.
const maxBatchLine = 8191

var (
	errBatchLineEnd = errors.New("a batch file cannot be given an argument with a line end or a NUL: start the program it starts instead")
	errBatchTooLong = errors.New("its arguments are too long for a batch file, which takes 8191 characters: start the program it starts instead")
)

// isBatchFile reports whether Windows would hand the file to its command
// interpreter, as it does with npx.cmd. Dots and blanks at the end of a name do not
// count there.
func isBatchFile(path string) bool {
	name := strings.ToLower(strings.TrimRight(path, ". "))
	return strings.HasSuffix(name, ".cmd") || strings.HasSuffix(name, ".bat")
}

// batchLine returns the command line that has cmd.exe run a batch file with
// arguments. For every other program a line is composed that it takes apart itself;
// cmd.exe reads the line before that, with rules of its own, and would run what
// stands behind an & in an argument (BatBadBut, CVE-2024-24576). The switches: /e:ON
// for what guards a percent sign, /v:OFF so that ! is itself, /d for no AutoRun.
func batchLine(file string, args []string) (string, error) {
	var b strings.Builder
	b.WriteString(`cmd.exe /e:ON /v:OFF /d /c "`)
	for i, word := range append([]string{file}, args...) {
		if strings.ContainsAny(word, "\r\n\x00") {
			return "", errBatchLineEnd
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		appendBatchWord(&b, word, i == 0 || !plainBatchWord(word))
	}
	b.WriteByte('"') // cmd.exe takes off the first quote and the last
	if utf16Len(b.String()) > maxBatchLine {
		return "", errBatchTooLong
	}
	return b.String(), nil
}

func utf16Len(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// plainBatchWord reports whether neither cmd.exe nor the program behind the batch
// file sees anything in the word but itself. A backslash at its end would take the
// quote with it that many batch files put around an argument.
func plainBatchWord(word string) bool {
	for _, r := range word {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if r < 0xa0 && !letter && !strings.ContainsRune(`#$*+-./:?@\_`, r) {
			return false
		}
	}
	return word != "" && !strings.HasSuffix(word, `\`)
}

// appendBatchWord appends a word. A quote in it is doubled, which both cmd.exe and
// the program read as one; backslashes before a quote are doubled for the program.
// No quotes keep cmd.exe from looking for variables: %%cd:~,% is an empty part of
// the variable cd, and uses up a percent sign that could begin another's name.
func appendBatchWord(b *strings.Builder, word string, quoted bool) {
	if quoted {
		b.WriteByte('"')
	}
	backslashes := 0
	for i := range len(word) {
		switch c := word[i]; c {
		case '\\':
			backslashes++
			b.WriteByte(c)
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes) + `""`)
		case '%':
			b.WriteString(`%%cd:~,%`)
		default:
			b.WriteByte(c)
		}
		backslashes = 0
	}
	if quoted {
		b.WriteString(strings.Repeat(`\`, backslashes) + `"`)
	}
}
