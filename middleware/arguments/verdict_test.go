package arguments

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestJudge holds Judge to testdata/verdicts.txt: "path" or "no", the tool, the
// argument, and the property's schema, or its description alone.
func TestJudge(t *testing.T) {
	f, err := os.Open("testdata/verdicts.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		line := in.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.SplitN(line, " ", 4)
		property := fields[3]
		if property[0] != '{' {
			property = `{"type":"string","description":"` + property + `"}`
		}
		got := Judge(fields[1], []byte(`{"type":"object","properties":{"`+fields[2]+`":`+property+`}}`), fields[2])
		if got.Path != (fields[0] == "path") {
			t.Errorf("%s\n\tgot %t: %s (%q)", line, got.Path, got.Why, got.Words)
		}
		if got.Why == "" || got.Path && got.Words == "" {
			t.Errorf("%s\n\thas no reason: %+v", line, got)
		}
	}
}
