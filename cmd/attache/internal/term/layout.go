package term

import (
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// Width is how many columns the demo takes.
	Width = 80
	// margin is what stands in front of each line of a frame: its demoOp and
	// a space.
	margin = 2
	// demoLong is how long a part must be to be cut short when it comes again.
	demoLong = 200
)

// A layoutLine is a line of a frame as it is shown.
type layoutLine struct {
	op     diffOp
	indent int
	text   string
	full   bool // nothing goes behind text
}

// A Layout breaks frames into lines: as many members as fit, and each change on a line of its
// own. It shortens values that were shown before.
type Layout struct {
	lines []layoutLine
	Shown map[string]bool
}

// frame returns the lines of a frame.
func (l *Layout) frame(nodes []node) []layoutLine {
	l.lines = nil
	l.nodes(nodes, 0)
	return l.lines
}

func (l *Layout) nodes(nodes []node, indent int) {
	for _, n := range nodes {
		if n.key() == "" && strings.HasPrefix(n.text, "{") {
			l.full() // an element that is an object is easier to find so
		}
		l.node(n, indent)
	}
}

// node writes a part of a frame behind the last line, or from indent on.
func (l *Layout) node(n node, indent int) {
	whole := n.lead + n.text + n.tail
	v := wire.Value{Raw: []byte(n.text)}
	switch {
	case len(n.items) > 0:
		at := l.put(n.op, indent, n.lead+n.text)
		l.nodes(n.items, at+2)
		l.put(n.op, at, n.tail)
	case l.known(n):
		l.elide(n, indent)
	case utf8.RuneCountInString(whole)+indent <= Width-margin:
		l.put(n.op, indent, whole)
	case v.IsString():
		l.long(n, indent)
	case v.IsObject(), v.IsArray():
		items := mergeItems(v, v)
		for i := range items {
			items[i].op = n.op
		}
		at := l.put(n.op, indent, n.lead+n.text[:1])
		l.nodes(items, at+2)
		l.put(n.op, at, n.text[len(n.text)-1:]+n.tail)
	default:
		l.put(n.op, indent, whole)
	}
}

// known reports whether a part was shown before and is not worth showing again:
// a long one, or one of the members that every modern message has.
func (l *Layout) known(n node) bool {
	if len(n.text) < demoLong && !strings.HasPrefix(n.key(), `"io.modelcontextprotocol/`) {
		return false
	}
	part := n.key() + n.text
	known := l.Shown[part]
	l.Shown[part] = true
	return known
}

// elide writes a known part: of a long one the beginning of its text, of several
// short ones in a row one ellipsis.
func (l *Layout) elide(n node, indent int) {
	if len(n.text) < demoLong {
		if last := len(l.lines) - 1; last < 0 || !strings.HasSuffix(l.lines[last].text, "…,") {
			l.put(n.op, indent, "…"+n.tail)
		}
		return
	}
	head, _, cut := strings.Cut(n.text, `\n`)
	if cut {
		head += ` …"` // it was cut inside a string
	}
	l.put(n.op, indent, n.lead+head+"…"+n.text[len(n.text)-1:]+n.tail)
}

// put writes text behind the last line if it belongs there and fits, and otherwise
// on a new line. It returns the indentation of that line.
func (l *Layout) put(op diffOp, indent int, text string) int {
	if len(l.lines) > 0 {
		last := &l.lines[len(l.lines)-1]
		if !last.full && last.op == op && last.indent+utf8.RuneCountInString(last.text+text) <= Width-margin {
			last.text += text
			return last.indent
		}
	}
	l.lines = append(l.lines, layoutLine{op: op, indent: indent, text: text})
	return indent
}

// full lets nothing go behind the last line.
func (l *Layout) full() {
	if len(l.lines) > 0 {
		l.lines[len(l.lines)-1].full = true
	}
}

// long writes a string that is longer than a line, wrapped at its spaces: a text of several
// lines as it reads.
func (l *Layout) long(n node, indent int) {
	text := wire.Value{Raw: []byte(n.text)}.Text()
	switch {
	case strings.Contains(text, "\n"):
		l.put(n.op, indent, n.lead+`"`)
		for line := range strings.Lines(text + `"` + n.tail) {
			l.full()
			at := 0
			for word := range strings.SplitAfterSeq(strings.TrimSuffix(line, "\n"), " ") {
				l.put(n.op, at, word)
				at = 4 // of what does not fit into a line
			}
		}
		l.full()
	case !strings.Contains(text, " "):
		l.put(n.op, indent, n.lead+n.text[:min(len(n.text), 20)]+`…"`+n.tail)
	default:
		for word := range strings.SplitAfterSeq(n.lead+n.text+n.tail, " ") {
			l.put(n.op, indent, word)
		}
	}
}
