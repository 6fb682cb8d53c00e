package identity

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// FuzzKeyFile parses any bytes as a key file. If they are accepted, writing the entries and
// reading them back changes nothing. Otherwise the error is one printable line that quotes nothing
// long enough to be a key.
func FuzzKeyFile(f *testing.F) {
	const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for _, seed := range []string{
		"", "# c\n", "#\r!", "#\rkeys:\n", "keys:\n", "keys: 5\n", "keys: [\n", "- a\n", "\xff", "a: &a b\nc: *a\n",
		"# head\nkeys:\n  # first\n  - id: a # line\n    sha256: " + sum + "\n    roles: [x, y]\n    expires: 2026-07-28\n# end\n",
		"keys:\n- {id: a, sha256: " + sum + ", user: \"b: #c\", trust: direct}\n",
		"keys:\n  - id: a\n    sha256: '" + sum + "'\n    atk_x7k2m4qa_ABCDEFGHABCDEFGHABCDEFGHABCDEFGH: x\n",
		"keys:\n  - id: a\n    ABCDEFGHABCDEFGH\n",
		"keys:\n  - <<: {id: a}\n    sha256: " + sum + "\n", "keys:\n  - null\n", "%YAML 1.2\n---\nkeys: []\n",
		"keys:\n  - id: a\n    sha256: >-\n      " + sum + "\n",
		"keys:\n  - id: a\n    sha256: " + sum + "\n    expires: 9999-12-31T23:59:59-12:00\n",
		"keys:\n  - id: a\n    sha256: " + sum + "\n    created: 0002-01-01T00:00:00+12:00\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseFile("keys.yaml", data)
		if err != nil {
			text := err.Error()
			if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is not printable", text)
			}
			if strings.Contains(text, "ABCDEFGHABCDEFGH") {
				t.Errorf("%q contains a key", text)
			}
			return
		}
		again, err := withEntries(data, entries)
		if err != nil {
			t.Fatalf("%q was read, but cannot be written: %v", data, err)
		}
		back, err := parse(again)
		if err != nil || !reflect.DeepEqual(back, entries) {
			t.Errorf("%q became %q: %v", data, again, err)
		}
	})
}
