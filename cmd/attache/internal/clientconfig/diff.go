package clientconfig

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// clipContext is how many bytes of a long line are shown on each side of the servers that change.
// Some clients write their whole configuration in one line.
const clipContext = 60

// A DiffLine is one line of a difference.
type DiffLine struct {
	// Op is '@' for a heading, '-' for an old line and '+' for a new one.
	Op byte
	// Text is the line without its line ending.
	Text string
}

// Diff returns the lines that p changes. It shows no unchanged lines, because those around a
// server's command are most often its secrets. In a changed line it hides the values of variables
// and headers, and arguments that are secrets according to the name of their flag or to looksSecret,
// which may be nil.
func (p *Plan) Diff(looksSecret func(argument string) bool) []DiffLine {
	p.hideArguments(looksSecret)
	var lines []DiffLine
	for i := 0; i < len(p.splices); {
		from := p.firstLine(p.splices[i])
		to := lineEnd(p.old, p.splices[i].to)
		j := i + 1
		for ; j < len(p.splices) && p.firstLine(p.splices[j]) <= to+1; j++ {
			to = lineEnd(p.old, max(p.splices[j].to, to))
		}
		lines = append(lines, p.hunk(from, to, p.splices[i:j])...)
		i = j
	}
	return lines
}

// firstLine returns the offset at which the first line that s changes begins. Lines that are added to or removed
// from the end of a file, with the line break before them, do not change the line before: then it is the offset of s.
func (p *Plan) firstLine(s splice) int {
	if s.to == len(p.old) && s.from == lineEnd(p.old, s.from) && (s.text == "" || s.text[0] == '\n') {
		return s.from
	}
	return lineStart(p.old, s.from)
}

// hunk returns the changes that splices make to the lines between from and to.
func (p *Plan) hunk(from, to int, splices []splice) []DiffLine {
	masks := p.masks(from, to)
	old := applyIn(p.old, span{from, to}, masks)
	both := slices.Clone(splices)
	for _, m := range masks {
		if !slices.ContainsFunc(splices, func(s splice) bool { return s.from <= m.from && m.to <= s.to }) {
			both = append(both, m)
		}
	}
	slices.SortStableFunc(both, func(a, b splice) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	changed := applyIn(p.old, span{from, to}, both)
	line, afterLine := lineAt(p.old, from), from > lineStart(p.old, from)
	if afterLine {
		line++
		old, changed = bytes.TrimPrefix(old, []byte("\n")), bytes.TrimPrefix(changed, []byte("\n"))
	}
	if !bytes.Contains(old, []byte("\n")) && len(old) > 4*clipContext {
		first, last := p.entries(from, to, splices)
		before, after := len(applyIn(p.old, span{from, first}, masks)), len(applyIn(p.old, span{last, to}, masks))
		old = clip(old, before, len(old)-after)
		changed = clip(changed, before, len(changed)-after)
	}
	lines := []DiffLine{{'@', fmt.Sprintf("line %d", line)}}
	for i, text := range [][]byte{old, changed} {
		if afterLine && len(text) == 0 {
			continue // not even an empty line
		}
		for l := range strings.SplitSeq(string(text), "\n") {
			lines = append(lines, DiffLine{"-+"[i], strings.TrimSuffix(l, "\r")})
		}
	}
	return lines
}

// masks returns the splices that hide the secrets between from and to.
func (p *Plan) masks(from, to int) []splice {
	var masks []splice
	for _, s := range p.secrets {
		if s.from < to && s.to > from {
			masks = append(masks, splice{span{max(s.from, from), min(s.to, to)}, `"[hidden]"`})
		}
	}
	return masks
}

// entries returns the range between from and to that contains the splices, and the names, commands
// and arguments of the entries that change. A remote server has no command, and the name of an
// entry can be in another line.
func (p *Plan) entries(from, to int, splices []splice) (first, last int) {
	first, last = splices[0].from, splices[len(splices)-1].to
	for _, step := range p.Steps {
		e := step.Entry
		if !step.Done {
			continue
		}
		if e.offset >= from {
			first = min(first, e.offset)
		}
		ends := []int{e.command.to}
		if e.args != nil {
			ends = append(ends, e.args.to)
		}
		for _, end := range ends {
			if end <= to {
				last = max(last, end)
			}
		}
	}
	return first, last
}

// clip returns the part of line between first and last, with clipContext bytes on each side.
func clip(line []byte, first, last int) []byte {
	var b bytes.Buffer
	from, to := max(first-clipContext, 0), min(last+clipContext, len(line))
	if from > 0 {
		b.WriteString("...")
	}
	b.Write(bytes.ToValidUTF8(line[from:to], nil))
	if to < len(line) {
		b.WriteString("...")
	}
	return b.Bytes()
}

// lineStart returns the offset at which the line that contains at begins.
func lineStart(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

// lineEnd returns the offset at which the line that contains at ends, without the line break.
func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(data)
}

// secretFlags are the words that mark a flag with a secret, from servers on npm and PyPI: --api-key,
// --access-token, --figma-api-key, --db-password.
var secretFlags = []string{"key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials", "auth", "authorization", "pat", "header"}

func (p *Plan) hideArguments(looksSecret func(string) bool) {
	for _, step := range p.Steps {
		if step.Entry.args == nil {
			continue
		}
		behindFlag := false
		for _, item := range step.Entry.args.items {
			flag, _, assigned := strings.Cut(item.value, "=")
			named := secretFlag(flag)
			if item.value != "" && (behindFlag && !strings.HasPrefix(item.value, "-") || named && assigned || looksSecret != nil && looksSecret(item.value)) {
				p.secrets = append(p.secrets, item.span)
			}
			behindFlag = named && !assigned
		}
	}
	slices.SortFunc(p.secrets, func(a, b span) int { return a.from - b.from })
	p.secrets = slices.Compact(p.secrets)
}

// secretFlag reports whether the value of flag is a secret. The path of a file that holds one is not.
func secretFlag(flag string) bool {
	name, ok := strings.CutPrefix(flag, "-")
	if !ok && strings.ToUpper(flag) != flag { // NAME=value is a variable, as for env
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '-' || c == '_' })
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretFlags, w) }) &&
		!slices.Contains(words, "file") && !slices.Contains(words, "path")
}
