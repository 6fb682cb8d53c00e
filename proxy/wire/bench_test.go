package wire

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// payloads make JSON values of about n bytes, one for each kind of large frame. The scanners have
// a different speed for each.
var payloads = []struct {
	name string
	make func(n int) string
}{
	{"text", func(n int) string {
		return `"` + strings.Repeat("All code changes must include tests. ", n/37+1)[:n] + `"`
	}},
	{"escaped", func(n int) string { return `"` + strings.Repeat(`say \"yes\" or\n`, n/16+1)[:n/16*16] + `"` }},
	{"cjk", func(n int) string { return `"` + strings.Repeat("配置文件已更新", n/21+1)[:n/21*21] + `"` }},
	{"records", func(n int) string {
		return list(n, func(i int) string {
			return fmt.Sprintf(`{"id":%d,"name":"file%d.go","size":%d.5,"ok":true,"tags":["a","b"],"at":null}`, i, i, i*7)
		})
	}},
	{"numbers", func(n int) string { return list(n, func(i int) string { return fmt.Sprint(i * 977 % 10007) }) }},
}

func list(n int, element func(int) string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; b.Len() < n-80; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(element(i))
	}
	b.WriteByte(']')
	return b.String()
}

var sizes = []struct {
	name string
	n    int
}{{"200B", 200}, {"4KiB", 4 << 10}, {"256KiB", 256 << 10}, {"4MiB", 4 << 20}}

func toolsCall(payload string) string {
	return `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"git_status","arguments":{"workspace":"main","x":` + payload + `}}}`
}

// replyGo and replyTS return a reply in the member order of the Go and the TypeScript SDK.
func replyGo(payload string) string {
	return `{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":` + payload + `}]}}`
}

func replyTS(payload string) string {
	return `{"result":{"content":[{"type":"text","text":` + payload + `}]},"jsonrpc":"2.0","id":17}`
}

// eachPayload runs bench for every kind and size of payload.
func eachPayload(b *testing.B, frame func(string) string, bench func(b *testing.B, frame []byte)) {
	overhead := len(frame(""))
	for _, size := range sizes {
		for _, p := range payloads {
			if size.n == 200 && p.name != "text" {
				continue
			}
			f := []byte(frame(p.make(max(size.n-overhead-2, 60))))
			b.Run(p.name+"/"+size.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(f)))
				bench(b, f)
			})
		}
	}
}

func BenchmarkLook(b *testing.B) {
	eachPayload(b, toolsCall, func(b *testing.B, frame []byte) {
		var s Scanner
		var m Message
		for b.Loop() {
			m.Reset(Client, frame)
			s.Look(&m)
		}
		if !m.Plain() {
			b.Fatal(m.Ambiguity())
		}
	})
}

func BenchmarkLookEnvelope(b *testing.B) {
	for _, order := range []struct {
		name  string
		frame func(string) string
	}{{"go", replyGo}, {"ts", replyTS}} {
		b.Run(order.name, func(b *testing.B) {
			eachPayload(b, order.frame, func(b *testing.B, frame []byte) {
				var m Message
				for b.Loop() {
					m.Reset(Server, frame)
					if !m.LookEnvelope() {
						b.Fatal("no message")
					}
				}
			})
		})
	}
}

func BenchmarkEnvelope(b *testing.B) {
	eachPayload(b, replyTS, func(b *testing.B, frame []byte) {
		for b.Loop() {
			var e Envelope
			for rest := frame; len(rest) > 0; {
				n := min(len(rest), 64<<10)
				e.Feed(rest[:n])
				rest = rest[n:]
			}
			if !e.Complete() {
				b.Fatal("not complete")
			}
		}
	})
}

func BenchmarkSet(b *testing.B) {
	eachPayload(b, toolsCall, func(b *testing.B, frame []byte) {
		var s Scanner
		var m Message
		m.Reset(Client, frame)
		s.Look(&m)
		looked := m
		for b.Loop() {
			room := m.room[:0]
			m = looked
			m.room = room
			if err := m.Set([]byte(`"w"`), "params", "arguments", "workspace"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPrepend(b *testing.B) {
	block := []byte(`{"type":"text","text":"` + strings.Repeat("policy ", 60) + `"}`)
	eachPayload(b, replyGo, func(b *testing.B, frame []byte) {
		var m Message
		for b.Loop() {
			m.Reset(Server, frame)
			m.LookEnvelope()
			if err := m.Prepend(block, "result", "content"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// stream returns data again and again, in reads of the size of a pipe.
type stream struct {
	data []byte
	at   int
}

func (s *stream) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 64<<10)], s.data[s.at:])
	s.at = (s.at + n) % len(s.data)
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	for _, size := range sizes {
		line := append(bytes.Repeat([]byte{'x'}, size.n-1), '\n')
		b.Run(size.name, func(b *testing.B) {
			r := NewReader(&stream{data: bytes.Repeat(line, max(1, (64<<10)/len(line)))}, 0)
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if _, _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
				r.Buffered()
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			var m Message
			m.Reset(Client, append(bytes.Repeat([]byte{'x'}, size.n-1), '\n'))
			w := NewWriter(io.Discard)
			b.ReportAllocs()
			b.SetBytes(int64(size.n))
			for b.Loop() {
				w.Write(&m)
			}
		})
	}
}
