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

// holdLimit is the longest frame that attache holds and so can fill: limits.hold at its
// default.
const holdLimit = 8 * mib

// maxLine is the longest line that server and client hold. Of a longer one, such as a
// frame of 1 GiB, they keep the head and the tail.
const maxLine = 64 * mib

// edge is the length of the head and the tail of a line in which the server searches.
const edge = 4 * kib

// A server answers the client of this benchmark, fast enough that the cost of a proxy
// shows. It parses nothing: it searches for known texts in the head and tail of a line,
// which is safe only because it has no other client.
//
//	tools/call echo  size=N            a text of N bytes
//	tools/call sink  data=...          the length of the request's line
//	tools/call notes count=N pause=MS  N notifications, the second MS after the first
//	tools/call tally                   the number of calls so far, and of those with the workspace
type server struct {
	out       *bufio.Writer
	flush     func() // sends what was written
	workspace []byte // the member of a filled call
	calls     int    // of echo and sink, if short enough to be filled
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
			break // the client has closed stdin
		}
		s.answer(b, n)
		if in.Buffered() == 0 {
			s.out.Flush()
		}
	}
	return s.out.Flush()
}

// readLine returns the next line and its length. Of a line longer than maxLine it
// returns the head and the tail. The bytes are valid until the next call.
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
		if len(acc)+len(b) > maxLine {
			acc = append(acc[:edge], acc[len(acc)-edge:]...)
		}
		acc = append(acc, b...)
	}
	*long = acc
	return acc, n, err
}

func (s *server) answer(b []byte, n int) {
	head, tail := b[:min(len(b), edge)], b[max(0, len(b)-edge):]
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
	`{"name":"sink","description":"receives a text","inputSchema":{"type":"object","properties":{"data":{"type":"string"},"workspace":{"type":"string"}}}},` +
	`{"name":"notes","description":"reports progress","inputSchema":{"type":"object","properties":{"count":{"type":"integer"},"pause":{"type":"integer"}}}},` +
	`{"name":"tally","description":"counts the calls","inputSchema":{"type":"object"}}`

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
	if n <= holdLimit {
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

// isNotes reports whether a line calls the tool notes.
func isNotes(head []byte) bool { return string(scalar(head, `"name":`)) == `"notes"` }

// notify sends the progress notifications of a call.
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

// scalar returns the raw value after key, a number or a string without escapes. It
// returns nil if there is no key.
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
