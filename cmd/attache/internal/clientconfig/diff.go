package clientconfig

import (
	"bytes"
	"fmt"
	"slices"
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
// those around a server's command are most often its secrets, and the values of
// variables and headers are hidden where they stand in a line that changes.
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
	masks := p.masks(from, to)
	old := apply(p.old[from:to], moved(masks, from))
	both := append(masks, splices...)
	slices.SortStableFunc(both, func(a, b splice) int { return a.from - b.from })
	changed := apply(p.old[from:to], moved(both, from))
	head := DiffLine{'@', fmt.Sprintf("line %d", lineAt(p.old, from))}
	if !bytes.Contains(old, []byte("\n")) && len(old) > 4*longestLine {
		first, tail := common(old, changed)
		old = clip(old, first, len(old)-tail)
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

// masks returns what hides the secrets between from and to.
func (p *Plan) masks(from, to int) []splice {
	var masks []splice
	for _, s := range p.secrets {
		if s.from < to && s.to > from {
			masks = append(masks, splice{span{max(s.from, from), min(s.to, to)}, `"[hidden]"`})
		}
	}
	return masks
}

// moved returns the splices for what begins at from.
func moved(splices []splice, from int) []splice {
	out := make([]splice, len(splices))
	for i, s := range splices {
		out[i] = splice{span{s.from - from, s.to - from}, s.text}
	}
	return out
}

// common returns how many bytes a and b begin with alike, and how many they end
// with alike behind those.
func common(a, b []byte) (head, tail int) {
	shorter := min(len(a), len(b))
	for head < shorter && a[head] == b[head] {
		head++
	}
	for tail < shorter-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
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
