package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// A Fault is the first place where a chain is broken.
type Fault Remark

func (f *Fault) Error() string { return Remark(*f).String() }

// A Remark describes an irregularity in an unbroken chain: an incomplete line, or records that
// are missing because they could not be written.
type Remark struct {
	File string
	Line int // from 1
	What string
}

func (r Remark) String() string { return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.What) }

// A Verifier reads the files of a chain, oldest first, and finds the first line
// that was changed, dropped, added or moved. The zero Verifier expects a whole
// chain from its first record on.
type Verifier struct {
	// After is the digest of the last line of the file before, which no longer exists. The
	// first line must contain it.
	After Digest
	// Expect is the digest of a line that must be in the chain; zero means none.
	Expect Digest
	// Line, if not nil, is called with the number and the digest of each line.
	Line func(seq uint64, digest Digest)

	// Records is the number of lines read, First and Last are the numbers of the first
	// and the last one, and Digest is the digest of the last one, to keep elsewhere.
	Records     int
	First, Last uint64
	Digest      Digest
	// Remarks are in the order of the lines.
	Remarks []Remark

	found   bool // whether a line has the digest Expect
	file    string
	line    int
	started bool // whether a line of this file was read
	partial fragment
	open    []byte // the last line of this file, if it has no newline
}

// A fragment is a part of a file that is not a line of a chain. A record that describes
// it must follow.
type fragment struct {
	line    int // the number of its first line; 0 means that there is no fragment
	bytes   int64
	sum     hash.Hash
	newline bool // whether it ends with a newline, which is not yet in bytes and sum
}

// File verifies the next file; name is its name in faults and remarks. An error that is
// not a [*Fault] is a read error.
func (v *Verifier) File(name string, r io.Reader) error {
	// Writers complete or describe the end of a file before they rename it, so only the last file
	// of a chain may end within a line.
	if len(v.open) > 0 {
		v.addPartial(v.open)
	}
	if v.partial.line > 0 {
		return v.unexplainedFault() // the file before ended with a fragment
	}
	v.file, v.line, v.started = name, 0, false
	b := bufio.NewReaderSize(r, MaxLine)
	for {
		text, err := b.ReadSlice('\n')
		if len(text) > 0 {
			v.line++
		}
		if errors.Is(err, io.EOF) {
			v.open = bytes.Clone(text)
			return nil
		}
		if fault := v.next(text); fault != nil {
			return fault
		}
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			if err := v.skip(b); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// skip adds the rest of a text that is too long for a line to the fragment.
func (v *Verifier) skip(b *bufio.Reader) error {
	for {
		text, err := b.ReadSlice('\n')
		v.addPartial(text)
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// next verifies one line. It returns nil, not a nil *Fault, if there is no fault.
func (v *Verifier) next(text []byte) error {
	l, ok := parseLine(text)
	if !ok {
		v.addPartial(text)
		return nil
	}
	n, err := v.note(text)
	if err == nil {
		err = v.checkPartial(n)
	}
	if err == nil {
		err = v.checkOrder(&l, n)
	}
	if err != nil {
		return err
	}
	switch n.Kind {
	case kindGap:
		v.remark("%d records are missing, because they could not be written", n.Records)
	case kindShortened:
		v.remark("the file was cut from %d to %d bytes", n.Was, n.Is)
	}
	if v.Records == 0 {
		v.First = l.seq
	}
	v.Records++
	v.Last, v.Digest, v.started = l.seq, l.digest, true
	v.found = v.found || v.Expect == l.digest
	if v.Line != nil {
		v.Line(l.seq, l.digest)
	}
	return nil
}

// addPartial adds a text that is not a line to the fragment.
func (v *Verifier) addPartial(text []byte) {
	t := &v.partial
	if t.line == 0 {
		*t = fragment{line: v.line, sum: sha256.New()}
	}
	if t.newline {
		t.add([]byte{'\n'})
	}
	text, t.newline = bytes.CutSuffix(text, []byte{'\n'})
	t.add(text)
}

func (t *fragment) add(b []byte) {
	t.bytes += int64(len(b))
	t.sum.Write(b)
}

// note returns the note in a line; its kind is "" if the line is another record.
func (v *Verifier) note(text []byte) (note, error) {
	var n note
	err := json.Unmarshal(text, &n) // reads the kind even if another member has the wrong type
	switch n.Kind {
	case kindBegin, kindRepaired, kindGap, kindShortened:
	default:
		return note{}, nil
	}
	if err != nil {
		return note{}, v.fault(v.line, "it was changed: a record of this kind has other members")
	}
	if n.Kind == kindBegin && n.Version != Version {
		return note{}, v.fault(v.line, "it is of version %d of the format, and this attache reads version %d: use the one that wrote it", n.Version, Version)
	}
	return n, nil
}

// checkPartial checks that the record describes the fragment before it.
func (v *Verifier) checkPartial(n note) error {
	t := &v.partial
	if t.line == 0 {
		if n.Partial != nil {
			return v.fault(v.line, "the incomplete line before it is gone: lines were dropped")
		}
		return nil
	}
	if n.Partial == nil || n.Partial.Bytes != t.bytes || n.Partial.Digest != Digest(t.sum.Sum(nil)).String() {
		return v.unexplainedFault()
	}
	v.Remarks = append(v.Remarks, Remark{v.file, t.line, fmt.Sprintf("a writer ended within a line and left %d bytes of it; the next writer recorded that", n.Partial.Bytes)})
	v.partial = fragment{}
	return nil
}

// checkOrder checks the number and the digest in l against the line before it.
func (v *Verifier) checkOrder(l *line, n note) error {
	switch {
	case v.started && n.Kind == kindBegin:
		return v.fault(v.line, "it was added: a file has one first line")
	case !v.started && n.Kind != kindBegin:
		return v.fault(v.line, "it does not begin the file: the lines before it were dropped")
	case v.Records == 0:
		return v.checkFirst(l, n)
	case l.seq == v.Last+1 && l.prev == v.Digest:
		return nil
	// The digest in a line is that of the line before it, so that line is the one to look at first.
	case l.seq == v.Last+1 && v.started:
		return v.fault(v.line-1, "it was changed, or line %d was changed or added: that carries another digest of it", v.line)
	case l.seq == v.Last+1:
		return v.fault(v.line, "it carries another digest of the last line of the file before: one of the two was changed, or lines were dropped there")
	case l.seq == v.Last+2:
		return v.fault(v.line, "record %d is missing before it: it was dropped or moved", v.Last+1)
	case l.seq > v.Last:
		return v.fault(v.line, "records %d to %d are missing before it: they were dropped or moved", v.Last+1, l.seq-1)
	}
	return v.fault(v.line, "record %d comes after record %d: it was added or moved", l.seq, v.Last)
}

func (v *Verifier) checkFirst(l *line, n note) error {
	// Only the first record of a chain carries the zero digest. Another one continues a file that the
	// caller must give, or whose last digest must be After.
	switch {
	case l.prev == v.After && (l.seq == 1) == (l.prev == Digest{}):
		return nil
	case v.After != Digest{}:
		return v.fault(v.line, "it does not continue from the given digest: another file belongs before this one")
	case l.seq == 1:
		return v.fault(v.line, "it was changed: it is the first line of the chain and carries the digest of another")
	case n.After != "":
		return v.fault(v.line, "it continues from record %d in %q, which is not among the files: give that too, or the digest of its last line with --after", l.seq-1, n.After)
	}
	return v.fault(v.line, "it continues from record %d in a file that is gone: give the digest of that record with --after if you know it", l.seq-1)
}

// Close checks the end of the last file, and that [Verifier.Expect] was found. For an
// incomplete last line it adds a remark, because a writer may still be writing it.
func (v *Verifier) Close() error {
	if err := v.end(); err != nil {
		return err
	}
	// A writer that ends within a line leaves no newline behind it.
	if v.partial.line > 0 && v.partial.newline {
		return v.unexplainedFault()
	}
	if v.partial.line > 0 {
		v.Remarks = append(v.Remarks, Remark{v.file, v.partial.line, fmt.Sprintf("the last line is not whole: a writer ended within it and left %d bytes", v.partial.bytes)})
	}
	if v.Expect != (Digest{}) && !v.found {
		return v.fault(max(v.line, 1), "no line has the digest that was expected: lines were dropped at the end, or the chain was made anew")
	}
	return nil
}

// end verifies a last line without a newline. If only the newline is missing, the line
// is valid: the next writer continues from it.
func (v *Verifier) end() error {
	text := append(v.open, '\n')
	if _, ok := parseLine(text); ok {
		v.remark("the last line lacks its newline: a writer ended before it, and the next one adds it")
		return v.next(text)
	}
	if len(v.open) > 0 {
		v.addPartial(v.open)
	}
	return nil
}

func (v *Verifier) unexplainedFault() error {
	return v.fault(v.partial.line, "it was changed or added: it is not a line of a log, and no record after it reports that a writer ended there")
}

func (v *Verifier) fault(line int, format string, args ...any) error {
	return &Fault{v.file, line, fmt.Sprintf(format, args...)}
}

func (v *Verifier) remark(format string, args ...any) {
	v.Remarks = append(v.Remarks, Remark{v.file, v.line, fmt.Sprintf(format, args...)})
}
