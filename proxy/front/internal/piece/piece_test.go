package piece

import (
	"bytes"
	"testing"
)

func TestCut(t *testing.T) {
	for _, size := range []int{0, 1, Size - 1, Size, Size + 1, 3*Size + 5} {
		whole := bytes.Repeat([]byte("0123456789a"), size/11+1)[:size]
		var got []byte
		for rest := whole; ; {
			var p []byte
			if p, rest = Cut(rest); len(p) > Size {
				t.Fatalf("a piece has %d bytes", len(p))
			}
			got = append(got, p...)
			Free(p)
			if len(rest) == 0 {
				break
			}
		}
		if !bytes.Equal(got, whole) {
			t.Errorf("the pieces of %d bytes differ from their source", size)
		}
	}
}

func TestCutCopies(t *testing.T) {
	b := []byte("abc")
	p, _ := Cut(b)
	b[0] = 'x'
	if string(p) != "abc" {
		t.Errorf("the piece is %q after its source changed", p)
	}
}
