package clientconfig

import (
	"bytes"
	"fmt"
	"strings"
)

// longestLine is how much of a line a difference shows on each side of what
// changes. Some clients write their whole configuration in one line.
const longestLine = 60

// A DiffLine is one line of a difference.
type DiffLine struct {
	// Op is '@' for a heading, '-' for a line as it was, '+' for one as it is to
	// be.
	Op byte
	// Text is the line without its end.
	Text string
}

// Diff returns what p changes, line by line. Lines that stay are not shown, as
// those around a server's command are most often its secrets.
func (p *Plan) Diff() []DiffLine {
	var lines []DiffLine
	for i := 0; i < len(p.splices); {
		from := lineStart(p.old, p.splices[i].from)
		to := lineEnd(p.old, p.splices[i].to)
		j := i + 1
		for ; j < len(p.splices) && lineStart(p.old, p.splices[j].from) <= to+1; j++ {
			to = lineEnd(p.old, max(p.splices[j].to, to))
		}
		lines = append(lines, p.hunk(from, to, p.splices[i:j])...)
		i = j
	}
	return lines
}

// hunk returns the difference that the splices make to the lines from from to to.
func (p *Plan) hunk(from, to int, splices []splice) []DiffLine {
	moved := make([]splice, len(splices))
	for i, s := range splices {
		moved[i] = splice{span{s.from - from, s.to - from}, s.text}
	}
	old := p.old[from:to]
	changed := apply(old, moved)
	head := DiffLine{'@', fmt.Sprintf("line %d", lineAt(p.old, from))}
	if !bytes.Contains(old, []byte("\n")) && len(old) > 4*longestLine {
		first, last := moved[0].from, moved[len(moved)-1].to
		tail := len(old) - last
		old = clip(old, first, last)
		changed = clip(changed, first, len(changed)-tail)
	}
	lines := []DiffLine{head}
	for _, l := range strings.Split(string(old), "\n") {
		lines = append(lines, DiffLine{'-', strings.TrimSuffix(l, "\r")})
	}
	for _, l := range strings.Split(string(changed), "\n") {
		lines = append(lines, DiffLine{'+', strings.TrimSuffix(l, "\r")})
	}
	return lines
}

// clip returns what is in line from first to last and a little on each side.
func clip(line []byte, first, last int) []byte {
	var b bytes.Buffer
	from, to := max(first-longestLine, 0), min(last+longestLine, len(line))
	if from > 0 {
		b.WriteString("...")
	}
	b.Write(bytes.ToValidUTF8(line[from:to], nil))
	if to < len(line) {
		b.WriteString("...")
	}
	return b.Bytes()
}

// lineStart returns where the line begins in which at is.
func lineStart(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

// lineEnd returns where the line ends in which at is, before its end of line.
func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(data)
}
