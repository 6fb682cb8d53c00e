package chain

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// A fault names its place, and the records that it is about.
func TestFaultTexts(t *testing.T) {
	begin := note{Kind: kindBegin, Version: Version}.body()
	chain := func(from tip, bodies ...[]byte) (all [][]byte) {
		for _, b := range bodies {
			all = append(all, from.next(nil, b))
		}
		return all
	}
	first := chain(tip{}, begin, body(1), body(2), body(3), body(4))
	without := func(from, to int) [][]byte { return slices.Delete(slices.Clone(first), from, to) }
	for _, test := range []struct {
		name  string
		files [][][]byte
		v     Verifier
		want  string
	}{
		{"nothing", [][][]byte{first}, Verifier{}, ""},
		{"a record dropped", [][][]byte{without(2, 3)}, Verifier{}, "0:3: record 3 is missing"},
		{"records dropped", [][][]byte{without(2, 4)}, Verifier{}, "0:3: records 3 to 4 are missing"},
		{"a record moved", [][][]byte{slices.Insert(slices.Clone(first), 4, first[2])}, Verifier{}, "0:5: record 3 comes after record 4"},
		{"the last record twice", [][][]byte{append(slices.Clone(first), first[4])}, Verifier{}, "0:6: record 5 comes after record 5"},
		{"another file before", [][][]byte{first, chain(tip{seq: 5, digest: Digest{1}}, begin)}, Verifier{}, "1:1: it carries another digest of the last line of the file before"},
		{"a file without the one before", [][][]byte{chain(tip{seq: 5, digest: Digest{1}}, begin)}, Verifier{}, "0:1: it continues from record 5 in a file that is gone"},
		{"a file without the one that it names", [][][]byte{chain(tip{seq: 5, digest: Digest{1}}, note{Kind: kindBegin, Version: Version, After: "a"}.body())}, Verifier{},
			`0:1: it continues from record 5 in "a"`},
		{"a first line with the digest of another", [][][]byte{chain(tip{digest: Digest{1}}, begin)}, Verifier{}, "0:1: it was changed: it is the first line"},
		{"another digest given", [][][]byte{first}, Verifier{After: Digest{1}}, "0:1: it does not continue from the given digest"},
		{"a digest expected", [][][]byte{first}, Verifier{Expect: Digest{1}}, "0:5: no line has the digest"},
		{"a digest expected in an empty file", [][][]byte{nil}, Verifier{Expect: Digest{1}}, "0:1: no line has the digest"},
		{"a file of another version", [][][]byte{chain(tip{}, note{Kind: kindBegin, Version: Version + 1}.body())}, Verifier{}, "0:1: it is of version 2 of the format"},
	} {
		var err error
		for i, file := range test.files {
			if err == nil {
				err = test.v.File(string(rune('0'+i)), bytes.NewReader(bytes.Join(file, nil)))
			}
		}
		if err == nil {
			err = test.v.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
