package term

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

const (
	// Width is how many columns a line takes at most.
	Width = 80
	// margin is what stands in front of each line of a frame: a sign and a space.
	margin = 2
)

// Frame writes a frame before and after attache: whole if it is the same, and else what differs
// with a little of what stands around it.
func (p *Printer) Frame(before, after []byte) {
	if bytes.Equal(before, after) {
		p.flow(' ', pieces(after))
		return
	}
	var run []string // of pieces with one sign
	sign, at, count := byte(' '), 0, 0
	from := pieces(before)
	text := diff.Diff("before", asLines(from), "after", asLines(pieces(after)))
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if i < 3 {
			continue // the names
		}
		if line[0] != sign {
			p.flow(sign, run)
			sign, run = line[0], nil
		}
		if sign != '@' {
			run = append(run, line[1:])
			continue
		}
		if sign = ' '; at > 0 {
			run = nil
		}
		_, _ = fmt.Sscanf(line, "@@ -%d,%d", &at, &count) // of package diff
		if at > 1 {
			run = []string{"…"}
		}
	}
	if at+count <= len(from) {
		run = append(run, "…")
	}
	p.flow(sign, run)
}

// asLines returns pieces as lines, of which a frame has none.
func asLines(pieces []string) []byte { return []byte(strings.Join(pieces, "\n") + "\n") }

// pieces splits a frame where a line may end: behind a bracket that opens, in front of one that
// closes and of a comma, and in texts behind a space and a line break.
func pieces(frame []byte) (all []string) {
	begin, inText, escaped := 0, false, false
	cut := func(at int) {
		if at > begin {
			all = append(all, string(frame[begin:at]))
			begin = at
		}
	}
	for i, c := range frame {
		switch {
		case escaped:
			if escaped = false; c == 'n' {
				cut(i + 1)
			}
		case inText && c == '\\':
			escaped = true
		case c == '"':
			inText = !inText
		case inText && c == ' ' || !inText && (c == '{' || c == '['):
			cut(i + 1)
		case !inText && (c == ',' || c == '}' || c == ']'):
			cut(i)
		}
	}
	cut(len(frame))
	return all
}

// flow writes pieces in as few lines as they take.
func (p *Printer) flow(sign byte, pieces []string) {
	const room = Width - margin
	style := map[byte]Style{'+': Good, '-': Bad}[sign]
	line := ""
	end := func() {
		p.Line(style, string(sign)+" "+line)
		line = ""
	}
	for _, piece := range pieces {
		text, breaks := strings.CutSuffix(piece, `\n`)
		if runes := []rune(text); len(runes) > room {
			text = string(runes[:room-1]) + "…"
		}
		if line != "" && utf8.RuneCountInString(line+text) > room {
			if rest, comma := strings.CutPrefix(text, ","); comma && utf8.RuneCountInString(line) < room {
				line, text = line+",", rest
			}
			end()
		}
		if line += text; breaks {
			end()
		}
	}
	if line != "" {
		end()
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
