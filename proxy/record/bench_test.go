package record

import (
	"strings"
	"testing"
)

func BenchmarkScrub(b *testing.B) {
	for name, text := range map[string]string{
		"base64": strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAUA", 1<<15),
		"prose":  strings.Repeat(`The quick brown fox: jumps over\nthe lazy dog = 1, `, 1<<14),
		"frames": strings.Repeat(`","jsonrpc":"2.0","id":"12345`, 1<<14),
	} {
		b.Run(name, func(b *testing.B) {
			s := testScrubber()
			line := []byte(`{"jsonrpc":"2.0","id":1,"result":["` + text + `"]}`)
			if name == "frames" {
				line = []byte(`["` + strings.Repeat(`x","jsonrpc","2.0","id","12345","method","tools/call","`, 1<<14) + `"]`)
			}
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				s.Line(line)
			}
		})
	}
}
