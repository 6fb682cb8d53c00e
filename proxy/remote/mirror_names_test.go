package remote

import (
	"fmt"
	"strings"
	"testing"
)

// A tool whose names are very long, or are many, is not recorded: the server chooses them.
func TestLongNamesAreNotMirrored(t *testing.T) {
	v := mirror{all: true}
	long := strings.Repeat("n", maxMirror)
	var usual, deep []parameter
	for i := range maxAnnotations {
		header := fmt.Sprint("Mcp-Param-Argument", i)
		usual = append(usual, parameter{header, []string{"arguments", "argument" + fmt.Sprint(i)}})
		deep = append(deep, parameter{header, make([]string, maxNesting)})
	}
	for _, test := range []struct {
		tool  string
		found []parameter
		known bool
	}{
		{"short", []parameter{{"Mcp-Param-A", []string{"a"}}}, true},
		{long, nil, true},
		{long + "n", nil, false},
		{"header", []parameter{{long, []string{"a"}}}, false},
		{"many", usual, true},
		{"many", deep, false},
		{"path", []parameter{{"Mcp-Param-A", []string{"a", long}}}, false},
	} {
		if v.set(test.tool, test.found); (v.tools[test.tool] != nil) != test.known {
			t.Errorf("%.10s: the tool is known: %t", test.tool, !test.known)
		}
	}
}
