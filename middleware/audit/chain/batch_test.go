package chain

import (
	"bytes"
	"strings"
	"testing"
)

// What a batch makes in place are the lines that a copy would be; its bodies stay what
// they were, for a file that cannot be written or another place in the chain.
func TestBatch(t *testing.T) {
	bodies := [][]byte{body(1), body(2), []byte(`{"long":"` + strings.Repeat("x", 1000) + `"}`), body(4)}
	for _, test := range []struct {
		name     string
		expected uint64 // the tip when the records were written out
		found    uint64
		from, to int
		ok       bool
	}{
		{"as expected", 5, 5, 0, 4, true},
		{"more digits on the way", 8, 8, 0, 4, true},
		{"the first of it", 5, 5, 0, 2, true},
		{"the rest of it", 5, 7, 2, 4, true},
		{"another has written", 5, 6, 0, 4, false},
		{"another has written many", 5, 50, 0, 4, false},
		{"the tip of another file", 50, 5, 0, 4, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := batchOf(&tip{seq: test.expected}, bodies...)
			found := tip{seq: test.found, digest: Digest{1, 2, 3}}
			end, want := found, found
			var copied []byte
			for _, body := range bodies[test.from:test.to] {
				copied = want.next(copied, body)
			}
			lines, ok := b.lines(&end, test.from, test.to)
			if ok != test.ok {
				t.Fatalf("in place: %v", ok)
			}
			if ok && (string(lines) != string(copied) || end != want) {
				t.Errorf("got %s, want %s", lines, copied)
			}
			end = found
			if lines := b.appendTo(nil, &end, test.from, test.to); string(lines) != string(copied) || end != want {
				t.Errorf("copied: got %s, want %s", lines, copied)
			}
			for i := range bodies {
				if got := b.body(i); !bytes.Equal(got, bodies[i]) {
					t.Errorf("body %d is %s", i, got)
				}
			}
		})
	}
}

// A record that is too long leaves nothing behind in its batch.
func TestBatchTooLong(t *testing.T) {
	var from tip
	b := batchOf(&from, body(1), bytes.Repeat([]byte("x"), MaxLine), body(2))
	want := batchOf(&from, body(1), body(2))
	if len(b.records) != 2 || !bytes.Equal(b.buf, want.buf) {
		t.Errorf("got %d records: %.200s", len(b.records), b.buf)
	}
}
