package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// hold is the longest frame that attache keeps whole, and so the longest that it
// can fill: limits.hold at its default.
const hold = 8 * mib

// kept is the longest line that server and client keep whole. Of a longer one
// the server keeps both ends, as a frame of 1 GiB must not be held by anyone.
const kept = 64 * mib

// ends is how much of each end of a long line is looked at.
const ends = 4 * kib

// A server answers what the client of this benchmark asks, so quickly that a
// proxy in front of it shows. It parses nothing: it looks for spellings it knows
// at both ends of a line, which is safe only because nobody else talks to it.
//
//	tools/call echo   size=N    a text of N bytes
//	tools/call sink   data=...  how long the request's line was
//	tools/call notes count=N pause=MS  N notifications, the second MS behind the first
//	tools/call tally            how many calls came so far, and how many had the workspace
type server struct {
	out       *bufio.Writer
	flush     func() // has what was written leave
	workspace []byte // the member a filled call has
	calls     int    // of echo and sink, those short enough to be filled
	filled    int
}

func serve(stdin io.Reader, stdout io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("want the workspace member: attache-bench starts this mode, give it flags instead")
	}
	s := &server{out: bufio.NewWriterSize(stdout, 64*kib), workspace: []byte(args[0])}
	s.flush = func() { s.out.Flush() }
	in := bufio.NewReaderSize(stdin, 64*kib)
	var long []byte
	for {
		b, n, err := readLine(in, &long)
		if err != nil {
			break // the client is done
		}
		s.answer(b, n)
		if in.Buffered() == 0 {
			s.out.Flush()
		}
	}
	return s.out.Flush()
}

// readLine returns the next line and its length. A line longer than kept comes
// back as its two ends. The bytes are valid until the next call.
func readLine(in *bufio.Reader, long *[]byte) (b []byte, n int, err error) {
	b, err = in.ReadSlice('\n')
	n = len(b)
	if !errors.Is(err, bufio.ErrBufferFull) {
		return b, n, err
	}
	acc := append((*long)[:0], b...)
	for errors.Is(err, bufio.ErrBufferFull) {
		b, err = in.ReadSlice('\n')
		n += len(b)
		if len(acc)+len(b) > kept {
			acc = append(acc[:ends], acc[len(acc)-ends:]...)
		}
		acc = append(acc, b...)
	}
	*long = acc
	return acc, n, err
}

func (s *server) answer(b []byte, n int) {
	head, tail := b[:min(len(b), ends)], b[max(0, len(b)-ends):]
	id := scalar(head, `"id":`)
	if id == nil {
		return // a notification
	}
	if isNotes(head) {
		s.notify(head)
	}
	s.out.WriteString(`{"jsonrpc":"2.0","id":`)
	s.out.Write(id)
	switch string(scalar(head, `"method":`)) {
	case `"initialize"`:
		s.out.WriteString(`,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"attache-bench","version":"1"}}}` + "\n")
	case `"tools/list"`:
		s.out.WriteString(`,"result":{"tools":[` + toolList + "]}}\n")
	case `"tools/call"`:
		s.call(head, tail, n)
	default:
		s.out.WriteString(`,"result":{}}` + "\n")
	}
}

const toolList = `{"name":"echo","description":"answers with a text","inputSchema":{"type":"object","properties":{"size":{"type":"integer"},"workspace":{"type":"string"}}}},` +
	`{"name":"sink","description":"takes a text","inputSchema":{"type":"object","properties":{"data":{"type":"string"},"workspace":{"type":"string"}}}},` +
	`{"name":"notes","description":"tells how it goes on","inputSchema":{"type":"object","properties":{"count":{"type":"integer"},"pause":{"type":"integer"}}}},` +
	`{"name":"tally","description":"tells what came","inputSchema":{"type":"object"}}`

func (s *server) call(head, tail []byte, n int) {
	tool := scalar(head, `"name":`)
	switch string(tool) {
	case `"tally"`:
		s.text(fmt.Appendf(nil, tallyFormat, s.calls, s.filled))
		return
	case `"notes"`:
		s.text(nil)
		return
	}
	if n <= hold {
		s.calls++
		if bytes.Contains(head, s.workspace) || bytes.Contains(tail, s.workspace) {
			s.filled++
		}
	}
	if string(tool) == `"sink"` {
		s.text(strconv.AppendInt(nil, int64(n), 10))
		return
	}
	size, _ := strconv.Atoi(string(scalar(head, `"size":`)))
	s.out.WriteString(textBefore)
	for size > 0 {
		c := min(size, len(payload()))
		s.out.Write(payload()[:c])
		size -= c
	}
	s.out.WriteString(textAfter)
}

// isNotes reports whether a line calls the tool that notifies.
func isNotes(head []byte) bool { return string(scalar(head, `"name":`)) == `"notes"` }

// notify notifies of the progress of a call.
func (s *server) notify(head []byte) {
	count, _ := strconv.Atoi(string(scalar(head, `"count":`)))
	pause, _ := strconv.Atoi(string(scalar(head, `"pause":`)))
	for i := range count {
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n", scalar(head, `"progressToken":`), i+1)
		if i == 0 && pause > 0 {
			s.flush()
			time.Sleep(time.Duration(pause) * time.Millisecond)
		}
	}
}

func (s *server) text(b []byte) {
	s.out.WriteString(textBefore)
	s.out.Write(b)
	s.out.WriteString(textAfter)
}

// scalar returns the value that follows key as it is written, if it is a number
// or a string without escapes.
func scalar(b []byte, key string) []byte {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return nil
	}
	b = bytes.TrimLeft(b[i+len(key):], " ")
	if len(b) > 0 && b[0] == '"' {
		if j := bytes.IndexByte(b[1:], '"'); j >= 0 {
			return b[:j+2]
		}
	}
	if j := bytes.IndexAny(b, ",}]\n"); j >= 0 {
		return b[:j]
	}
	return b
}
