package chain

// A batch holds records that are written out, one behind the other, each as the line
// it will most likely be: with its number, room for the digest of the line before, and
// a newline. So the bytes of a record are not copied once more when the file is locked
// and it is known where the chain ends.
type batch struct {
	first   uint64 // the number of the first line, if nobody else has written to the file
	buf     []byte
	records []placed
}

// placed is a record of a batch.
type placed struct {
	body, end int      // where in the buffer its body begins, and its line ends
	size      int      // what it counts as, in bytes
	receipt   *Receipt // nil where nobody waits
}

// open returns the buffer with the head of another line. The caller appends the body
// and calls add.
func (b *batch) open() []byte {
	b.buf, _ = appendHead(b.buf, b.first+uint64(len(b.records)))
	return b.buf[:len(b.buf)-1] // the brace of the body stands where the comma will
}

// add takes a record whose body was appended to what open returned; ok is false if it
// is too long for a line, and left out.
func (b *batch) add(buf []byte, it item) (ok bool) {
	begin, body := b.start(len(b.records)), len(b.buf)-1
	if lineLen(len(buf)-body) > MaxLine {
		b.buf = buf[:begin]
		return false
	}
	b.buf = append(buf, '\n')
	b.records = append(b.records, placed{body: body, end: len(b.buf), size: it.size, receipt: it.receipt})
	return true
}

// start returns where line i begins.
func (b *batch) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.records[i-1].end
}

// body returns the body of record i.
func (b *batch) body(i int) []byte {
	r := b.records[i]
	b.buf[r.body] = '{'
	return b.buf[r.body : r.end-1]
}

// appendTo appends the lines from one record to another that follow t, and moves t to
// the last.
func (b *batch) appendTo(dst []byte, t *tip, from, to int) []byte {
	for i := from; i < to; i++ {
		dst = t.next(dst, b.body(i))
	}
	return dst
}

// lines is appendTo in place. ok is false if the lines have other numbers by now.
func (b *batch) lines(t *tip, from, to int) (_ []byte, ok bool) {
	if b.first+uint64(from) != t.seq+1 {
		return nil, false
	}
	for i := from; i < to; i++ {
		r, begin := b.records[i], b.start(i)
		b.buf[r.body] = ','
		t.follow(b.buf[begin:r.end], r.body-len(`"`)-len(noDigest)-begin)
	}
	return b.buf[b.start(from):b.records[to-1].end], true
}

// emptied returns the room of a batch that is over, unless it has grown large.
func (b *batch) emptied() batch {
	if cap(b.buf) > keepRoom || cap(b.records) > keepItems {
		return batch{}
	}
	clear(b.records)
	return batch{buf: b.buf[:0], records: b.records[:0]}
}
