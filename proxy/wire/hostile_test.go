package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile makes values of about n bytes that take very long to scan if a scanner reads bytes more
// than a bounded number of times.
var hostile = []struct {
	name    string
	verdict Ambiguity
	make    func(n int) string
}{
	{"quotes", 0, func(n int) string { return `"` + strings.Repeat(`\"`, n/2) + `"` }},
	{"backslashes", 0, func(n int) string { return `"` + strings.Repeat(`\`, n/2*2) + `"` }},
	{"escaped quotes far apart", 0, func(n int) string { return `"` + strings.Repeat(strings.Repeat("x", 100)+`\"`, n/102) + `"` }},
	{"escapes before a far quote", 0, func(n int) string { return `"` + strings.Repeat(`\n`, n/4) + strings.Repeat("x", n/2) + `"` }},
	{"empty strings", 0, func(n int) string { return `[` + strings.Repeat(`"",`, n/3) + `""]` }},
	{"empty objects", 0, func(n int) string { return `[` + strings.Repeat(`{},`, n/3) + `{}]` }},
	{"empty arrays", 0, func(n int) string { return `[` + strings.Repeat(`[],`, n/3) + `[]]` }},
	{"many names", 0, func(n int) string { return numbered(`"%x":0,`, n) }},
	{"many long names", 0, func(n int) string { return numbered(`"longer than a word %x":0,`, n) }},
	{"equal names", EqualKeys, func(n int) string { return `{` + strings.Repeat(`"":0,`, n/5) + `"":0}` }},
	{"equal long names", EqualKeys, func(n int) string { return `{` + strings.Repeat(`"aaaaaaaaaaaaaaaa":0,`, n/21) + `"":0}` }},
	{"escaped names", EqualKeys, func(n int) string { return `{` + strings.Repeat(`"\u0061":0,`, n/11) + `"":0}` }},
	{"a long escaped name", 0, func(n int) string { return `{"` + strings.Repeat(`\u0061`, n/6) + `":0}` }},
	{"objects of sixteen names", 0, func(n int) string {
		return `[` + strings.Repeat(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0},`, n/98) + `0]`
	}},
	{"objects of seventeen names", 0, func(n int) string {
		return `[` + strings.Repeat(`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0},`, n/104) + `0]`
	}},
	{"deep arrays", TooDeep, func(n int) string { return strings.Repeat(`[`, n/2) + strings.Repeat(`]`, n/2) }},
	{"deep objects", TooDeep, func(n int) string { return strings.Repeat(`{"a":`, n/6) + "0" + strings.Repeat(`}`, n/6) }},
	{"many values of depth 500", 0, func(n int) string {
		return `[` + strings.Repeat(strings.Repeat(`[`, 500)+strings.Repeat(`]`, 500)+",", n/1001) + `0]`
	}},
	{"many values that are too deep", TooDeep, func(n int) string {
		return `[` + strings.Repeat(strings.Repeat(`[`, 600)+strings.Repeat(`]`, 600)+",", n/1201) + `0]`
	}},
	{"open brackets", NotJSON, func(n int) string { return strings.Repeat(`[`, n) }},
	{"a long number", 0, func(n int) string { return strings.Repeat("1", n) }},
	{"white space", 0, func(n int) string { return strings.Repeat(" ", n) + "1" }},
	{"broken UTF-8", NotUTF8, func(n int) string { return `"` + strings.Repeat("\xff", n) + `"` }},
}

// numbered returns an object of about n bytes with members of this format.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return `{` + b.String() + `"":0}`
}

func hostileFrame(value string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"a":` + value + `}}}`)
}

// The time of a scan is proportional to the length. A quadratic scan would take hours; the limit is
// five minutes.
func TestLinear(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			frame := hostileFrame(h.make(1 << 20))
			start := time.Now()
			m := look(frame)
			if got := m.Ambiguity(); got != h.verdict {
				t.Errorf("%v, want %v", got, h.verdict)
			}
			m.LookEnvelope()
			m.Get("params", "arguments", "b")
			var e Envelope
			for rest := frame; len(rest) > 0; {
				n := min(len(rest), 1000)
				e.Feed(rest[:n])
				rest = rest[n:]
			}
			if took := time.Since(start); took > 5*time.Minute { // with -race and other tests at the same time
				t.Errorf("the scans took %v", took)
			}
		})
	}
}

// BenchmarkLookHostile shows steps that are not linear: the speeds of the two sizes should be almost
// equal, and not far below those of BenchmarkLook.
func BenchmarkLookHostile(b *testing.B) {
	for _, h := range hostile {
		for _, n := range []int{64 << 10, 4 << 20} {
			frame := hostileFrame(h.make(n))
			b.Run(fmt.Sprintf("%s/%dKiB", h.name, n>>10), func(b *testing.B) {
				var s Scanner
				var m Message
				b.SetBytes(int64(len(frame)))
				b.ReportAllocs()
				for b.Loop() {
					m.Reset(Client, frame)
					s.Look(&m)
				}
			})
		}
	}
}

func BenchmarkLookEnvelopeHostile(b *testing.B) {
	for _, h := range hostile {
		for _, n := range []int{64 << 10, 4 << 20} {
			frame := hostileFrame(h.make(n))
			b.Run(fmt.Sprintf("%s/%dKiB", h.name, n>>10), func(b *testing.B) {
				var m Message
				b.SetBytes(int64(len(frame)))
				for b.Loop() {
					m.Reset(Server, frame)
					m.LookEnvelope()
				}
			})
		}
	}
}
