package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRequests(t *testing.T) {
	for _, f := range []frame{{Size: 200}, {Args: true, Size: 200}, {Args: true, Size: 3*mib + 5}} {
		b := f.request(nil, 17)
		if len(b) != f.requestLen(17) {
			t.Errorf("%v: %d bytes, announced as %d", f, len(b), f.requestLen(17))
		}
		var m struct {
			ID     int
			Params struct {
				Name      string
				Arguments struct {
					Size int
					Data string
				}
			}
		}
		check(t, json.Unmarshal(b, &m))
		if a := m.Params.Arguments; m.ID != 17 || max(a.Size, len(a.Data)) != f.Size || bytes.Count(b, []byte{'\n'}) != 1 {
			t.Errorf("%v: %.120q", f, b)
		}
	}
}

func TestServerAnswersItsClient(t *testing.T) {
	long := frame{Args: true, Size: 300 * kib}
	script := strings.Join([]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"workspace":"/w","size":70}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"size":1100000}}}`,
		strings.TrimSpace(string(long.request(nil, 4))),
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"tally","arguments":{}}}`,
	}, "\n") + "\n"
	var out bytes.Buffer
	check(t, serve(strings.NewReader(script), &out, []string{`"workspace":"/w"`}))
	lines := bytes.SplitAfter(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n"))
	if len(lines) != 6 {
		t.Fatalf("%d answers, want 6: %.300q", len(lines), out.Bytes())
	}
	for _, l := range lines {
		if !json.Valid(l) {
			t.Errorf("not JSON: %.200q", l)
		}
	}
	if err := checkText(lines[2], 2, 70); err != nil {
		t.Error(err)
	}
	if err := checkText(lines[3], 3, 1100000); err != nil {
		t.Error(err)
	}
	if err := checkSink(lines[4], 4, long.requestLen(4), false); err != nil {
		t.Error(err)
	}
	if got, _ := textOf(append(lines[5], '\n'), 5); string(got) != "calls=3 filled=1" {
		t.Errorf("tally %q", got)
	}
}

// The server and the client must not hold a frame of 1 GiB.
func TestServerKeepsTheEdgesOfALongLine(t *testing.T) {
	f := frame{Args: true, Size: maxLine + 3*mib}
	r, w := io.Pipe()
	go func() {
		c := session{in: w}
		w.CloseWithError(c.send(f, 8))
	}()
	var long []byte
	b, n, err := readLine(bufio.NewReaderSize(r, 64*kib), &long)
	check(t, err)
	if n != f.requestLen(8) || len(b) > maxLine {
		t.Errorf("a line of %d bytes read as %d, of which %d kept", f.requestLen(8), n, len(b))
	}
	if !bytes.HasPrefix(b, f.requestHead(nil, 8)) || !bytes.HasSuffix(b, []byte(f.requestTail())) {
		t.Errorf("the edges are %.80q and %q", b, b[len(b)-80:])
	}
}

func TestCheckTextFindsEveryFault(t *testing.T) {
	const size = 100
	good := answerHead(7) + string(payload()[:size]) + textAfter
	check(t, checkText([]byte(good), 7, size))
	for name, bad := range map[string]string{
		"another id":   strings.Replace(good, `"id":7`, `"id":8`, 1),
		"shorter":      answerHead(7) + string(payload()[:size-1]) + textAfter,
		"longer":       answerHead(7) + string(payload()[:size+1]) + textAfter,
		"cut":          good[:len(good)-3],
		"two":          good + good,
		"nothing":      "",
		"other text":   strings.Replace(good, "ordinary", "0rdinary", 1),
		"more members": strings.Replace(good, "}]", `,"x":1}]`, 1),
	} {
		if checkText([]byte(bad), 7, size) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTextCheckInPieces(t *testing.T) {
	const size = mib + 77
	var whole []byte
	whole = append(whole, answerHead(1)...)
	whole = append(whole, payload()...)
	whole = append(whole, payload()[:77]...)
	whole = append(whole, textAfter...)
	for _, step := range []int{1000, mib - 1, len(whole)} {
		c := newTextCheck(1, size)
		for b := whole; len(b) > 0; b = b[min(step, len(b)):] {
			if err := c.next(b[:min(step, len(b))]); err != nil {
				t.Fatalf("in steps of %d: %v", step, err)
			}
		}
		if err := c.end(); err != nil {
			t.Errorf("in steps of %d: %v", step, err)
		}
	}
}

func TestCheckSink(t *testing.T) {
	says := func(n string) []byte { return []byte(answerHead(3) + n + textAfter) }
	for _, test := range []struct {
		b       []byte
		mayGrow bool
		want    bool
	}{
		{says("500"), false, true},
		{says("499"), true, false},
		{says("530"), true, true},
		{says("530"), false, false},
		{says("none"), true, false},
		{[]byte(answerHead(4) + "500" + textAfter), true, false},
	} {
		if err := checkSink(test.b, 3, 500, test.mayGrow); (err == nil) != test.want {
			t.Errorf("%q with growth %v: %v", test.b, test.mayGrow, err)
		}
	}
}

func TestRelaysChangeNothing(t *testing.T) {
	in := strings.Repeat("short\n\n", 50) + strings.Repeat("long ", 60*kib) + "\nafter\nno newline at the end"
	for name, forward := range map[string]func(io.Writer, io.Reader){
		"lines": copyLines, "bytes": copyBytes,
	} {
		for kind, r := range map[string]io.Reader{
			"whole": strings.NewReader(in), "halves": iotest.HalfReader(strings.NewReader(in)), "with the end": iotest.DataErrReader(strings.NewReader(in)),
		} {
			var out strings.Builder
			forward(&out, r)
			if out.String() != in {
				t.Errorf("the relay of %s changes input read %s: %d bytes for %d", name, kind, out.Len(), len(in))
			}
		}
	}
}

// Other subjects are compared with the relay of lines, so it must write each line once.
func TestCopyLinesWritesOnceALine(t *testing.T) {
	var w writes
	copyLines(&w, strings.NewReader("one\ntwo\n"+strings.Repeat("3", 200*kib)+"\n"))
	if len(w) != 3 {
		t.Errorf("%d writes for 3 lines", len(w))
	}
}

type writes []int

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, len(b))
	return len(b), nil
}

func TestTailKeepsTheLast(t *testing.T) {
	var tl tail
	for range 100 {
		io.WriteString(&tl, strings.Repeat("early ", 10)+"\n")
	}
	io.WriteString(&tl, "last\n  words\n")
	if got := tl.String(); !strings.HasSuffix(got, "early last words") || len(got) > kib {
		t.Errorf("%d bytes: %q", len(got), got[max(0, len(got)-40):])
	}
}
