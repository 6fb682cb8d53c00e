package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// Width is the width of the output in columns. Of these, margin are in front of each line of a frame,
// for its sign ("+", "-" or none) and a space.
const (
	Width  = 80
	margin = 2
)

// Frame writes a frame before and after: where it changed, the lines of its indented form that
// differ and those around them; otherwise the frame as it is.
func (p *Printer) Frame(before, after []byte) {
	if bytes.Equal(before, after) {
		p.wrapFrame(Plain, " ", string(after))
		return
	}
	changes := diff.Diff("before", indented(before), "after", indented(after))
	header := true
	for line := range strings.Lines(string(changes)) {
		sign, text := line[:1], strings.TrimSuffix(line[1:], "\n")
		switch {
		case sign == "@":
			if !strings.HasPrefix(text, "@ -1,") {
				p.Line(Quiet, "  …")
			}
			header = false
		case header: // the names of the two sides
		case sign == "+":
			p.wrapFrame(Good, sign, text)
		case sign == "-":
			p.wrapFrame(Bad, sign, text)
		default:
			p.wrapFrame(Plain, sign, text)
		}
	}
}

// indented returns a frame with a line for each member, and a frame that is not JSON as it is.
func indented(frame []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, frame, "", "  ") != nil {
		out.Reset()
		out.Write(frame)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// wrapFrame writes a part of a frame behind a sign, wrapped behind spaces and commas. A text of
// several lines is written as it reads, and a word that is longer than a line is cut.
func (p *Printer) wrapFrame(style Style, sign, text string) {
	write := func(row string) {
		if runes := []rune(strings.TrimRight(row, " ")); len(runes) > Width-margin {
			row = string(runes[:Width-margin-1]) + "…"
		}
		p.Line(style, sign+" "+row)
	}
	text = strings.NewReplacer(`\\`, `\\`, `\n`, "\n").Replace(text)
	for line := range strings.SplitSeq(text, "\n") {
		row := ""
		for word := range strings.SplitSeq(strings.NewReplacer(" ", " \x00", ",", ",\x00").Replace(line), "\x00") {
			if strings.TrimSpace(row) != "" && utf8.RuneCountInString(row+strings.TrimRight(word, " ")) > Width-margin {
				write(row)
				row = ""
			}
			row += word
		}
		write(row)
	}
}

// Beginning writes as much of a frame as fits on a line.
func (p *Printer) Beginning(frame []byte) {
	text := []rune(string(frame))
	if n := Width - margin; len(text) > n {
		text = append(text[:n-1], '…')
	}
	p.Line(Quiet, "  "+string(text))
}
