package chain

import (
	"bytes"
	"errors"
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
		{"a file that ends within a line before another", [][][]byte{append(slices.Clone(first), []byte(`{"seq":6`)), chain(tip{seq: 5}, begin)}, Verifier{},
			"0:6: it was changed or added: it is not a line of a log"},
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

// An unbroken chain may have remarks, and Line gets each of its lines.
func TestRemarks(t *testing.T) {
	begin := note{Kind: kindBegin, Version: Version}.body()
	for _, test := range []struct {
		name   string
		bodies [][]byte
		end    string // after the lines
		want   string
	}{
		{"nothing", [][]byte{begin, body(1)}, "", ""},
		{"records that are missing", [][]byte{begin, note{Kind: kindGap, Records: 7}.body()}, "", "f:2: 7 records are missing"},
		{"a file that was cut", [][]byte{begin, note{Kind: kindShortened, Was: 9, Is: 7}.body()}, "", "f:2: the file was cut from 9 to 7 bytes"},
		{"a last line that is not whole", [][]byte{begin, body(1)}, `{"seq":3`, "f:3: the last line is not whole: a writer ended within it and left 8 bytes"},
	} {
		var last tip
		var text []byte
		for _, b := range test.bodies {
			text = last.next(text, b)
		}
		var got []uint64
		v := Verifier{Line: func(seq uint64, digest Digest) {
			if got = append(got, seq); seq == last.seq && digest != last.digest {
				t.Errorf("%s: Line gets another digest", test.name)
			}
		}}
		if err := errors.Join(v.File("f", strings.NewReader(string(text)+test.end)), v.Close()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if !slices.Equal(got, []uint64{1, 2}) {
			t.Errorf("%s: Line gets %d", test.name, got)
		}
		if len(v.Remarks) != min(1, len(test.want)) || test.want != "" && !strings.HasPrefix(v.Remarks[0].String(), test.want) {
			t.Errorf("%s: %v", test.name, v.Remarks)
		}
	}
}

func TestParseDigest(t *testing.T) {
	want := Digest{0xab, 1}
	text := want.String()
	for given, ok := range map[string]bool{
		text: true, "": false, text[len(digestPrefix):]: false, "sha512:" + text[len(digestPrefix):]: false, text[:len(text)-1]: false, text + "0": false,
		strings.Replace(text, "ab", "AB", 1): false, strings.Replace(text, "ab", "xb", 1): false,
	} {
		if got, err := ParseDigest(given); (err == nil) != ok || ok && got != want || !ok && !errors.Is(err, ErrDigest) {
			t.Errorf("%q: %v, %v", given, got, err)
		}
	}
}

// A line is valid JSON that begins as this package writes it.
func TestParseLine(t *testing.T) {
	prev := Digest{}.String()
	for text, want := range map[string]bool{
		`{"seq":1,"prev":"` + prev + `","a":1}` + "\n": true, `{"seq":1,"prev":"` + prev + `","a":1}`: false, `{"seq":1,"prev":"` + prev + `","a":}` + "\n": false,
		`{"seq":1,"prev":"` + prev + `"}` + "\n": false, `{"seq":,"prev":"` + prev + `","a":1}` + "\n": false, `{"seq":0,"prev":"` + prev + `","a":1}` + "\n": false,
		`{"seq":1x,"prev":"` + prev + `","a":1}` + "\n": false, `{"seq":1,"prev":"` + prev[:20] + `","a":1}` + "\n": false, `{ "seq":1,"prev":"` + prev + `","a":1}` + "\n": false,
	} {
		if _, ok := parseLine([]byte(text)); ok != want {
			t.Errorf("%s is a line: %v", text, ok)
		}
	}
}
