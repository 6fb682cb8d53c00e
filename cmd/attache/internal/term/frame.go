package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// margin is the number of columns before each line of a frame, for its sign ("+", "-" or none) and a space.
const margin = 2

// Frame writes the difference between a frame before and after, as a diff of its indented form with some
// context. If nothing changed, it writes the frame unchanged.
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

// indented returns a frame with a line for each member. It does not change a frame that is not JSON.
func indented(frame []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, frame, "", "  ") != nil {
		out.Reset()
		out.Write(frame)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// wrapFrame writes a part of a frame after a sign. It wraps after spaces and commas, writes escaped line
// breaks as line breaks, and cuts words that are longer than a line.
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

// Beginning writes one line with the beginning of a frame.
func (p *Printer) Beginning(frame []byte) {
	text := []rune(string(frame))
	if n := Width - margin; len(text) > n {
		text = append(text[:n-1], '…')
	}
	p.Line(Quiet, "  "+string(text))
}
