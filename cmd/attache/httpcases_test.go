package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each case of Streamable HTTP, F01 to F58 and U01 to U30, has a test with its number in the name or title.
func TestHTTPCases(t *testing.T) {
	text := sources(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	scripts, _ := filepath.Glob("../../proxy/front/testdata/*.txtar")
	for _, file := range scripts {
		text += page(t, strings.TrimPrefix(filepath.ToSlash(file), "../../"))
	}
	names := regexp.MustCompile(`(?m)(^func Test|^-- |^\t\t\{(name: )?")([FU]\d\d ?)+`).FindAllString(text, -1)
	numbers := strings.Join(names, "\n")
	for letter, last := range map[string]int{"F": 58, "U": 30} {
		for n := 1; n <= last; n++ {
			if number := fmt.Sprintf("%s%02d", letter, n); !strings.Contains(numbers, number) {
				t.Errorf("no test has the number of case %s", number)
			}
		}
	}
}
