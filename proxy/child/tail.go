package child

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	tailBytes = 8 << 10
	tailLines = 20
)

// A tail keeps the last bytes added to it. It holds at most twice tailBytes,
// so that most additions move nothing.
type tail struct {
	buf []byte
	cut bool // buf may begin in the middle of a line
}

func (t *tail) add(b []byte) {
	if over := len(b) - tailBytes; over > 0 {
		t.buf, t.cut = t.buf[:0], true
		b = b[over:]
	}
	// Keep the last tailBytes. b has no more than that.
	if len(t.buf)+len(b) > 2*tailBytes {
		keep := len(t.buf) - (tailBytes - len(b))
		t.buf = append(t.buf[:0], t.buf[keep:]...)
		t.cut = true
	}
	t.buf = append(t.buf, b...)
}

// errorLine matches a line that reports an error. Many programs then print a usage or a
// stack that has more lines than are returned.
// It is compiled when a process has ended with many lines, which few do.
var errorLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\W*(?i:\w*error|fatal|panic)\b|"level":"(?:error|fatal)"`)
})

// lines returns the last lines, oldest first. It omits an incomplete first line unless it is
// the only one. If none of the lines reports an error, the first two are replaced by the last
// earlier line that does, and "…".
func (t *tail) lines() []string {
	b, cut := t.buf, t.cut
	if over := len(b) - tailBytes; over > 0 {
		b, cut = b[over:], true
	}
	b = bytes.TrimRight(b, "\r\n")
	if len(b) == 0 {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(string(b), "\uFFFD"), "\n")
	if cut && len(lines) > 1 {
		lines = lines[1:]
	}
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	if over := len(lines) - tailLines; over > 0 {
		before := lines[:over]
		if lines = lines[over:]; slices.ContainsFunc(lines, errorLine().MatchString) {
			return lines
		}
		for _, line := range slices.Backward(before) {
			if errorLine().MatchString(line) {
				return append([]string{line, "…"}, lines[2:]...)
			}
		}
	}
	return lines
}
