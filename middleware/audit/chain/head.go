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

// A Head is the last line of a file at some moment. Kept where writers of the file have no
// access, it shows later that the file was cut, made anew or lost.
type Head struct {
	File   Digest // of the file's first line, which names the file wherever it is
	Seq    uint64 // the number of the line
	Digest Digest // of the line
}

// maxBegin bounds the first line of a file, in bytes. It is a record of the chain's own.
const maxBegin = 8 << 10

// beginning returns the digest of the first line of a file, zero if it has no whole line.
func beginning(r io.ReaderAt) Digest {
	text := make([]byte, maxBegin)
	n, _ := r.ReadAt(text, 0)
	end := bytes.IndexByte(text[:n], '\n')
	if end < 0 {
		return Digest{}
	}
	return sha256.Sum256(text[:end+1])
}

// head returns where the file ends as far as this process has written it.
func (w *file) head() Head {
	if w.begun == (Digest{}) && w.f != nil {
		w.begun = beginning(w.f)
	}
	return Head{w.begun, w.tip.seq, w.tip.digest}
}

// Beginning returns the digest of the first line, by which a [Head] names the file; zero if the
// file has none.
func (f *SnapshotFile) Beginning() Digest { return beginning(f.f) }

// Has reports whether the line of h is in its file, if that is one of these.
func (s *Snapshot) Has(h Head) (bool, error) {
	for _, f := range slices.Backward(s.Files) {
		if f.Beginning() == h.File {
			return f.has(h)
		}
	}
	return false, nil
}

// has looks at the end of the file first: a head that is asked for is seldom far from it.
func (f *SnapshotFile) has(h Head) (bool, error) {
	for look := int64(maxLook); ; look *= 16 {
		from := max(0, f.size-look)
		there, err := has(io.NewSectionReader(f.f, from, f.size-from), h)
		if there || err != nil || from == 0 {
			return there, err
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
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return false, err
		}
	}
}
