package child

// This file concerns Windows only. It is built everywhere, so that its tests run everywhere.

import (
	"errors"
	"strings"
	"unicode/utf16"
)

// maxBatchLine is the longest line that the Windows command interpreter accepts, in UTF-16.
const maxBatchLine = 8191

var (
	errBatchLineEnd = errors.New("a batch file cannot be given an argument with a line end or a NUL: start the program it starts instead")
	errBatchTooLong = errors.New("its arguments are too long for a batch file, which takes 8191 characters: start the program it starts instead")
)

// isBatchFile reports whether Windows would run the file in its command interpreter,
// as it does with npx.cmd. Windows ignores dots and blanks at the end of a name.
func isBatchFile(path string) bool {
	name := strings.ToLower(strings.TrimRight(path, ". "))
	return strings.HasSuffix(name, ".cmd") || strings.HasSuffix(name, ".bat")
}

// batchLine returns the command line with which cmd.exe runs a batch file with
// arguments. Other programs split their command line themselves, but cmd.exe parses
// the line first by its own rules, and would run what follows an & in an argument
// (BatBadBut, CVE-2024-24576). The switches: /e:ON enables the escaping of percent
// signs, /v:OFF makes ! an ordinary character, /d disables AutoRun.
func batchLine(file string, args []string) (string, error) {
	var b strings.Builder
	b.WriteString(`cmd.exe /e:ON /v:OFF /d /c "`)
	for i, word := range append([]string{file}, args...) {
		// A line end would end the command, whatever quotes are around it.
		if strings.ContainsAny(word, "\r\n\x00") {
			return "", errBatchLineEnd
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		appendBatchWord(&b, word, i == 0 || !plainBatchWord(word))
	}
	b.WriteByte('"') // cmd.exe removes the first and the last quote
	if len(utf16.Encode([]rune(b.String()))) > maxBatchLine {
		return "", errBatchTooLong
	}
	return b.String(), nil
}

// plainBatchWord reports whether the word has no special characters for cmd.exe or
// the program that the batch file starts. A backslash at its end would escape the
// quote that many batch files put around an argument.
func plainBatchWord(word string) bool {
	for _, r := range word {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if r < 0xa0 && !letter && !strings.ContainsRune(`#$*+-./:?@\_`, r) {
			return false
		}
	}
	return word != "" && !strings.HasSuffix(word, `\`)
}

// appendBatchWord appends a word. It doubles a quote, which both cmd.exe and the
// program read as one, and backslashes before a quote. cmd.exe expands variables
// even within quotes. %%cd:~,% expands to a percent sign and an empty part of the
// variable cd, so that the sign cannot begin the name of another variable.
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
