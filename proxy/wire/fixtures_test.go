package wire

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// table reads the rows of testdata/name, whose columns are separated by " | ". It skips empty
// lines and lines that begin with #.
func table(t testing.TB, name string, columns int) [][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	check(t, err)
	var rows [][]string
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		row := strings.SplitN(line, " | ", columns)
		if len(row) != columns {
			t.Fatalf("%s:%d: %d columns, want %d", name, i+1, len(row), columns)
		}
		rows = append(rows, row)
	}
	return rows
}

var repeated = regexp.MustCompile(`<<(\d+)\*(.*?)>>`)

// expand replaces each <<n*text>> by n times text.
func expand(s string) string {
	return repeated.ReplaceAllStringFunc(s, func(r string) string {
		m := repeated.FindStringSubmatch(r)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}

// line unquotes a Go string and expands its repetitions.
func line(t testing.TB, quoted string) []byte {
	t.Helper()
	s, err := strconv.Unquote(quoted)
	if err != nil {
		t.Fatalf("%s: %v", quoted, err)
	}
	return []byte(expand(s))
}

// argumentNames are the names of arguments for which ambiguous.txt has rows.
var argumentNames = [][]string{{"workspace", "path", "größe"}, {"id"}, {"key"}}

var verdicts = map[string]Ambiguity{
	"plain": 0, "batch": 0, "message": 0,
	"notjson": NotJSON, "notutf8": NotUTF8, "toodeep": TooDeep, "equalkeys": EqualKeys,
	"twinname": TwinName, "inherited": Inherited, "badenvelope": BadEnvelope, "badcall": BadCall,
}

func verdict(t testing.TB, word string) Ambiguity {
	t.Helper()
	a, ok := verdicts[word]
	if !ok {
		t.Fatalf("no verdict %q", word)
	}
	return a
}

// ambiguousLines returns the lines of ambiguous.txt.
func ambiguousLines(t testing.TB) (lines [][]byte) {
	for _, row := range table(t, "ambiguous.txt", 5) {
		lines = append(lines, line(t, row[4]))
	}
	return lines
}

// A markedFrame is a frame of places.txt and the values that are marked in it.
type markedFrame struct {
	peer, kind string
	frame      []byte
	places     map[string]Value
}

func markedFrames(t testing.TB) (frames []markedFrame) {
	for _, row := range table(t, "places.txt", 3) {
		m := markedFrame{peer: row[0], kind: row[1], places: map[string]Value{}}
		type open struct {
			name  string
			start int
		}
		var opened []open
		for rest := row[2]; rest != ""; {
			switch {
			case strings.HasPrefix(rest, "«"):
				name, after, _ := strings.Cut(rest[len("«"):], " ")
				opened = append(opened, open{name, len(m.frame)})
				rest = after
			case strings.HasPrefix(rest, "»"):
				o := opened[len(opened)-1]
				opened = opened[:len(opened)-1]
				raw := strings.TrimRight(string(m.frame[o.start:]), " ")
				m.places[o.name] = Value{[]byte(raw), o.start}
				rest = rest[len("»"):]
			default:
				m.frame = append(m.frame, rest[0])
				rest = rest[1:]
			}
		}
		frames = append(frames, m)
	}
	return frames
}
