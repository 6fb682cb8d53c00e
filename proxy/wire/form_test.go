package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// HasForm distinguishes messages from log lines of a server.
func TestHasForm(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(`
yes {"jsonrpc":"2.0","id":1,"result":{}}
yes { "result" : { "a":1 } , "id" : "x" , "jsonrpc" : "2.0" }
yes {"jsonrpc":"2.\u0030","id":1.5,"result":"text"}
yes {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}
yes {"jsonrpc":"2.0","error":{"code":-32700,"message":""}}
yes {"jsonrpc":"2.0","id":1,"result":[ [], "a"]}
yes {"jsonrpc":"2.0","id":1,"result":[{}]}
yes {"jsonrpc":"2.0","id":1,"result":{},"error":null}
yes {"jsonrpc":"2.0","method":"a"}
yes {"jsonrpc":"2.0","id":1,"method":"a","params":null}
yes {"jsonrpc":"2.0","id":1,"method":"a","params":{"b":1}}
yes {"jsonrpc":"2.0","id":1,"result":{},"result":{}}
yes [{"jsonrpc":"2.0","id":1,"result":{}}]
yes [{"level":"info"},{"jsonrpc":"2.0","method":"a"}]
yes [{"id":1,"result":{}}]
no  [{"level":"info"},{"level":"error"}]
no  [{},1,[{"jsonrpc":"2.0","method":"a"}]]
no  {"jsonrpc":"2.0","result":{}}
no  {"level":"error","error":"no such file"}
no  {"method":"GET","path":"/"}
no  {"id":1,"result":"ok"}
no  {"jsonrpc":"2.0"}
no  {"jsonrpc":"2.0","id":1}
no  {"jsonrpc":"1.0","id":1,"result":{}}
no  {"jsonrpc":2.0,"id":1,"result":{}}
no  {"jsonrpc":"2.0","id":1,"result":{oops}}
no  {"jsonrpc":"2.0","id":1,"result":[oops]}
no  {"jsonrpc":"2.0","id":1,"result":oops}
no  {"jsonrpc":"2.0","id":oops,"result":{}}
yes {"jsonrpc":"2.0","id":{"a":1},"result":{}}
no  {"jsonrpc":"2.0","id":"\x","result":{}}
no  {"jsonrpc":"2.0","id":1,"error":"no such file"}
no  {"jsonrpc":"2.0","id":1,"method":2}
no  {"jsonrpc":"2.0","id":1,"method":"a","params":3}
no  {"jsonrpc":"2.0","id":1,"method":"a","params":{'b':1}}
`), "\n") {
		want, frame, _ := strings.Cut(line, " ")
		var m Message
		m.Reset(Server, []byte(strings.TrimSpace(frame)+"\n"))
		if got := m.LookEnvelope() && m.HasForm(); got != (want == "yes") {
			t.Errorf("%s: %v", frame, got)
		}
	}
	for _, frame := range []string{
		"{\"jsonrpc\":\"2.0\",\"id\":\"\x01\",\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\rb\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"a\xff\"}",
	} {
		var m Message
		m.Reset(Server, []byte(frame+"\n"))
		if m.LookEnvelope() && m.HasForm() {
			t.Errorf("%q has the form of a message", frame)
		}
	}
}

// validStart accepts the strings and numbers that encoding/json accepts, in UTF-8.
func TestValidStart(t *testing.T) {
	everyText("\"\\u0-1.e~\x7f\x1f\xff", 4, func(text string) {
		if text != "" && validStart([]byte(text)) != (json.Valid([]byte(text)) && utf8.ValidString(text)) {
			t.Errorf("%q: %v", text, validStart([]byte(text)))
		}
	})
}

func BenchmarkHasForm(b *testing.B) {
	var m Message
	m.Reset(Server, []byte(replyGo(strings.Repeat("x", 100))))
	m.LookEnvelope()
	for b.Loop() {
		if !m.HasForm() {
			b.Fatal("no message")
		}
	}
}
