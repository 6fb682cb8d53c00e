package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// What stands around the text of an answer, after its id.
const (
	textBefore  = `,"result":{"content":[{"type":"text","text":"`
	textAfter   = `"}]}}` + "\n"
	tallyFormat = "calls=%d filled=%d"
)

// payload is a piece of the text in which all frames consist, however long: it
// repeats every 32 bytes. Plain words, as some proxies look for secrets.
var payload = sync.OnceValue(func() []byte {
	return bytes.Repeat([]byte("a plain line of ordinary words, "), mib/32)
})

// request appends the call to b.
func (f frame) request(b []byte, id int) []byte {
	b = f.requestHead(b, id)
	if f.Args {
		for n := f.Size; n > 0; n -= len(payload()) {
			b = append(b, payload()[:min(n, len(payload()))]...)
		}
	}
	return append(b, f.requestTail()...)
}

func (f frame) requestHead(b []byte, id int) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, int64(id), 10)
	b = append(b, `,"method":"tools/call","params":{"name":"`...)
	if f.Args {
		return append(b, `sink","arguments":{"data":"`...)
	}
	b = append(b, `echo","arguments":{"size":`...)
	return strconv.AppendInt(b, int64(f.Size), 10)
}

func (f frame) requestTail() string {
	if f.Args {
		return `"}}}` + "\n"
	}
	return "}}}\n"
}

// requestLen is how long the request is, with its newline.
func (f frame) requestLen(id int) int {
	n := len(f.requestHead(nil, id)) + len(f.requestTail())
	if f.Args {
		n += f.Size
	}
	return n
}

// answerHead is how the answer to the request id begins.
func answerHead(id int) string {
	return `{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + textBefore
}

// A textCheck compares an answer with the one expected, byte by byte, as it comes
// in: an answer of 1 GiB is never held.
type textCheck struct {
	head string
	size int
	off  int
}

func newTextCheck(id, size int) *textCheck { return &textCheck{head: answerHead(id), size: size} }

// take compares the next bytes of the answer.
func (c *textCheck) take(b []byte) error {
	for len(b) > 0 {
		want := c.want(len(b))
		n := min(len(want), len(b))
		if n == 0 || !bytes.Equal(b[:n], want[:n]) {
			return fmt.Errorf("wrong answer: at byte %d it has %.80q and not %.80q", c.off, b, want)
		}
		c.off += n
		b = b[n:]
	}
	return nil
}

// want returns some of what comes next, at most n bytes of it.
func (c *textCheck) want(n int) []byte {
	off := c.off
	if off < len(c.head) {
		return []byte(c.head[off:])
	}
	if off -= len(c.head); off < c.size {
		piece := payload()[off%len(payload()):]
		return piece[:min(len(piece), c.size-off, n)]
	}
	return []byte(textAfter[min(off-c.size, len(textAfter)):])
}

// end tells whether the answer was whole.
func (c *textCheck) end() error {
	if whole := len(c.head) + c.size + len(textAfter); c.off != whole {
		return fmt.Errorf("wrong answer: %d bytes long and not %d", c.off, whole)
	}
	return nil
}

// checkText tells whether b is the answer to a call for a text of size bytes.
func checkText(b []byte, id, size int) error {
	c := newTextCheck(id, size)
	if err := c.take(b); err != nil {
		return err
	}
	return c.end()
}

// checkSink tells whether b says that the server saw the whole request, which
// was sent bytes long. A layer that fills makes it longer.
func checkSink(b []byte, id, sent int, mayGrow bool) error {
	text, ok := textOf(b, id)
	n, err := strconv.Atoi(string(text))
	if !ok || err != nil || n < sent || n > sent && !mayGrow {
		return fmt.Errorf("wrong answer: the server should have seen %d bytes, and it says %.120q", sent, b)
	}
	return nil
}

// textOf returns the text of a short answer to the request id.
func textOf(b []byte, id int) ([]byte, bool) {
	b, ok := bytes.CutPrefix(b, []byte(answerHead(id)))
	if !ok {
		return nil, false
	}
	return bytes.CutSuffix(b, []byte(textAfter))
}
