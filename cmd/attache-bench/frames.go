package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// The parts of an answer between its id and its text, and after the text.
const (
	textBefore  = `,"result":{"content":[{"type":"text","text":"`
	textAfter   = `"}]}}` + "\n"
	tallyFormat = "calls=%d filled=%d"
)

// payload returns 1 MiB of the text in all frames. It repeats every 32 bytes. It is
// plain words because some proxies look for secrets.
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

// requestLen returns the length of the request with its newline.
func (f frame) requestLen(id int) int {
	n := len(f.requestHead(nil, id)) + len(f.requestTail())
	if f.Args {
		n += f.Size
	}
	return n
}

// answerHead returns the beginning of the answer to the request id.
func answerHead(id int) string {
	return `{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + textBefore
}

// A textCheck compares an answer with the expected one, piece by piece, so that an
// answer of 1 GiB is never held.
type textCheck struct {
	head string
	size int // of the text
	off  int // of the next byte
}

func newTextCheck(id, size int) *textCheck { return &textCheck{head: answerHead(id), size: size} }

// next checks the next bytes of the answer.
func (c *textCheck) next(b []byte) error {
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

// want returns the beginning of the expected rest, about n bytes at most.
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

func (c *textCheck) end() error {
	if want := len(c.head) + c.size + len(textAfter); c.off != want {
		return fmt.Errorf("wrong answer: %d bytes long and not %d", c.off, want)
	}
	return nil
}

// checkText checks that b is the answer to a call for a text of size bytes.
func checkText(b []byte, id, size int) error {
	c := newTextCheck(id, size)
	if err := c.next(b); err != nil {
		return err
	}
	return c.end()
}

// checkSink checks that b reports the length of the whole request, which was sent
// bytes long. A layer that fills makes it longer.
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
