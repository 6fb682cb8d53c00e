package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strconv"
)

// A Head is the last line of a file at some moment. If it is kept in a place that writers of
// the file cannot access, it shows later that the file was cut, replaced or lost.
type Head struct {
	File   Digest // of the file's first line; identifies the file
	Seq    uint64 // the number of the line
	Digest Digest // of the line
}

// maxBegin bounds the first line of a file, which this package writes, in bytes.
const maxBegin = 8 << 10

// beginning returns the digest of the first line of a file, or zero if the line is incomplete.
func beginning(r io.ReaderAt) Digest {
	text := make([]byte, maxBegin)
	n, _ := r.ReadAt(text, 0)
	end := bytes.IndexByte(text[:n], '\n')
	if end < 0 {
		return Digest{}
	}
	return sha256.Sum256(text[:end+1])
}

// head returns the last line that this process has written.
func (w *file) head() Head {
	if w.firstLine == (Digest{}) && w.f != nil {
		w.firstLine = beginning(w.f)
	}
	return Head{w.firstLine, w.tip.seq, w.tip.digest}
}

// Beginning returns the digest of the first line, which identifies the file in a [Head]; zero if
// the file has no complete line.
func (f *SnapshotFile) Beginning() Digest { return beginning(f.f) }

// Has reports whether the file of h is in the snapshot and contains the line of h.
func (s *Snapshot) Has(h Head) (bool, error) {
	for _, f := range slices.Backward(s.Files) {
		if f.Beginning() == h.File {
			return f.has(h)
		}
	}
	return false, nil
}

// has searches the end of the file first, because a head is usually near it.
func (f *SnapshotFile) has(h Head) (bool, error) {
	for length := int64(maxTail); ; length *= 16 {
		from := max(0, f.size-length)
		found, err := has(io.NewSectionReader(f.f, from, f.size-from), h)
		if found || err != nil || from == 0 {
			return found, err
		}
	}
}

func has(r io.Reader, h Head) (bool, error) {
	begin := append(strconv.AppendUint([]byte(headSeq), h.Seq, 10), ',')
	for b := bufio.NewReaderSize(r, MaxLine); ; {
		text, err := b.ReadSlice('\n')
		if bytes.HasPrefix(text, begin) && sha256.Sum256(text) == h.Digest {
			return true, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		// A text longer than MaxLine comes in parts, none of which is a line.
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}
