package remote_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/remote"
)

const (
	asJSON   = "application/json"
	asEvents = "text/event-stream"
)

// Every form of an answer is delivered as one line with the bytes of the message, and every
// request is answered. The numbers are those of the list of cases.
func TestAnswers(t *testing.T) {
	failed := func(text string) []string {
		return []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"` + text + `…`}
	}
	note := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	odd := `{ "id" :1, "x":"\u0041\/", "jsonrpc":"2.0","result":{"n":1.0,"big":9007199254740993,"a":1,"a":2} }`
	one := []string{result}
	floating := strings.Replace(result, `"id":1`, `"id":1.0`, 1)
	long := `{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, c := range []struct {
		name   string
		status int
		kind   string
		body   string
		want   []string
	}{
		{"U01 JSON", 200, asJSON, result, one},
		{"U01 JSON, float id", 200, asJSON, floating, one},
		{"U02 events, float id", 200, asEvents, "data: " + floating + "\n\n", one},
		{"U01 JSON with a newline", 200, "application/json; charset=utf-8", result + "\n", one},
		{"U01 JSON, bytes unchanged", 200, asJSON, odd, []string{odd}},
		{"U01 JSON on several lines", 200, asJSON, "{\n\"jsonrpc\":\"2.0\",\r\n \"id\":1,\n\"result\":{}\n}\r\n", []string{`{ "jsonrpc":"2.0",   "id":1, "result":{} }`}},
		{"U01 long JSON", 200, asJSON, long + "\n", []string{long}},
		{"U01 long JSON on several lines", 200, asJSON, "{\n" + long[1:] + "\r\n", []string{"{ " + long[1:]}},
		{"U01 SSE", 200, asEvents, "event: message\ndata: " + result + "\n\n", one},
		{"U01 SSE, bytes unchanged", 200, asEvents, "data: " + odd + "\n\n", []string{odd}},
		{"U01 CRLF", 200, asEvents, "event: message\r\ndata: " + result + "\r\n\r\n", one},
		{"U01 CR", 200, asEvents, "event: message\rdata: " + result + "\r\r", one},
		{"U01 mixed newlines", 200, asEvents, "event: message\rdata: " + result + "\r\n\n", one},
		{"U01 BOM", 200, asEvents, "\xEF\xBB\xBFdata: " + result + "\n\n", one},
		{"U01 no space", 200, asEvents, "data:" + result + "\n\n", one},
		{"U01 two data lines", 200, asEvents, "data: {\"jsonrpc\":\"2.0\",\ndata:\"id\":1,\"result\":{}}\n\n", []string{`{"jsonrpc":"2.0", "id":1,"result":{}}`}},
		{"U01 several messages", 200, asEvents, "data: " + note + "\n\ndata: " + note + "\n\ndata: " + result + "\n\n", []string{note, note, result}},
		{"U01 last event unterminated", 200, asEvents, "data: " + result, one},
		{"U03 comment", 200, asEvents, ": hello\n\n:\n\ndata: " + result + "\n\n", one},
		{"U03 unknown field", 200, asEvents, "colour: red\ndata: " + result + "\nx:\n\n", one},
		{"U03 line without a colon", 200, asEvents, "nothing\ndata\n\ndata: " + result + "\n\n", one},
		{"U03 other event type", 200, asEvents, "event: ping\ndata: " + note + "\n\ndata: " + result + "\n\n", one},
		{"U03 empty data", 200, asEvents, "id: 1\nretry: 10\ndata:\n\ndata: " + result + "\n\n", one},
		{"U03 data is not JSON", 200, asEvents, "data: hello\n\ndata: " + result + "\n\n", one},
		{"U04 ends without an answer", 200, asEvents, "data: " + note + "\n\n", append([]string{note}, failed("the server ended the stream")...)},
		{"U04 empty", 200, asEvents, "", failed("the server ended the stream")},
		{"U04 half an event", 200, asEvents, `data: {"jsonrpc":"2.0","id":1,"res`, failed("the server ended the stream")},
		{"U07 202", 202, "", "", failed("the server took the request and does not answer it (HTTP 202 Accepted)")},
		{"U07 204", 204, "", "", failed("the server took the request and does not answer it (HTTP 204 No Content)")},
		{"U07 HTML", 200, "text/html", "<html>hello</html>", failed(`the server's answer is not a JSON-RPC message for the request: HTTP 200 OK, content type \"text/html\": <html>hello</html>`)},
		{"U07 no content type", 200, "", result, one},
		{"U07 empty", 200, asJSON, "", failed("the server's answer is not a JSON-RPC message")},
		{"U07 half of a JSON object", 200, asJSON, result[:40], failed("the server's answer is not a JSON-RPC message")},
		{"U07 another id", 200, asJSON, `{"jsonrpc":"2.0","id":2,"result":{}}`, append([]string{`{"jsonrpc":"2.0","id":2,"result":{}}`}, failed("the server's answer")...)},
		{"U07 an error that is not one of JSON-RPC", 200, asJSON, `{"error":"no"}`, failed(`the server's answer is not a JSON-RPC message for the request: HTTP 200 OK, content type \"application/json\": {\"error\":\"no\"}`)},
		{"U07 events with such an error", 200, asEvents, "data: {\"error\":\"no\"}\n\n", failed("the server ended the stream")},
		{"U07 an array", 200, asJSON, "[" + result + "]", one},
		{"U07 an array of several messages", 200, asJSON, "[" + note + ",\n" + result + ", 5, []]", []string{note, result}},
		{"U07 events with an array", 200, asEvents, "data: [" + note + "," + result + "]\n\n", []string{note, result}},
		{"U07 an array without the answer", 200, asJSON, "[" + note + "]", append([]string{note}, failed("the server's answer is not a JSON-RPC message")...)},
		{"U01 JSON behind a BOM", 200, asJSON, "\xEF\xBB\xBF" + result, one},
		{"U01 long JSON behind a BOM", 200, asJSON, "\xEF\xBB\xBF" + long, []string{long}},
		{"U07 twice", 200, asEvents, "data: " + result + "\n\ndata: " + result + "\n\n", one},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := connect(t, func(w http.ResponseWriter, _ *http.Request) {
				if w.Header()["Content-Type"] = nil; c.kind != "" {
					w.Header().Set("Content-Type", c.kind)
				}
				if c.kind == asJSON {
					w.Header().Set("Content-Length", strconv.Itoa(len(c.body)))
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			cl.send(call)
			for _, want := range c.want {
				cl.expect(want)
			}
			cl.close()
		})
	}
}

// An HTTP error is an answer, and the next call works. A JSON-RPC error with the id of the request
// is passed on unchanged; one without an id, or with that of no request, gets the id of the request. All
// other texts are part of the message of an error that attache makes.
func TestU08Refusals(t *testing.T) {
	const object = `{"code":-32000,"message":"no","data":{"x":[1]}}`
	for _, status := range []int{400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429, 500, 502, 503, 504} {
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP %d `, status)
		for _, c := range []struct{ name, body, want string }{
			{"empty", "", text + "…"},
			{"text", "go away", text + "…"},
			{"id", `{"error":` + object + `,"id":1,"jsonrpc":"2.0"}`, `{"error":` + object + `,"id":1,"jsonrpc":"2.0"}`},
			{"null", `{"jsonrpc":"2.0","error":` + object + `,"id":null}`, `{"jsonrpc":"2.0","id":1,"error":` + object + `}`},
			{"error of OAuth", `{"error":"invalid_token","error_description":"over"}`, text + "…"},
			{"error without code", `{"error":{"message":"no"}}`, text + "…"},
			{"id of no request", `{"jsonrpc":"2.0","id":"server-error","error":` + object + `}`, `{"jsonrpc":"2.0","id":1,"error":` + object + `}`},
			{"no id", `{"jsonrpc":"2.0","error":` + object + `}`, `{"jsonrpc":"2.0","id":1,"error":` + object + `}`},
		} {
			t.Run(fmt.Sprint(status, " ", c.name), func(t *testing.T) {
				n := 0
				cl := connect(t, func(w http.ResponseWriter, _ *http.Request) {
					if n++; n == 2 {
						w.Header().Set("Content-Type", asJSON)
						io.WriteString(w, strings.Replace(result, `"id":1`, `"id":2`, 1))
						return
					}
					w.WriteHeader(status)
					io.WriteString(w, c.body)
				})
				cl.send(call)
				cl.expect(c.want)
				cl.send(strings.Replace(call, `"id":1`, `"id":2`, 1))
				cl.expect(strings.Replace(result, `"id":1`, `"id":2`, 1))
				cl.close()
			})
		}
	}
}

// An error that attache makes does not repeat the credentials that a server repeats, also if they are longer than
// what is shown of the server's text.
func TestRefusalRepeatsCredentials(t *testing.T) {
	for _, token := range []string{"marked-token", strings.Repeat("marked-", 60)} {
		for _, c := range []struct{ name, body, want string }{
			{"authorization", "Invalid access token: " + token, "Invalid access token: [hidden]"},
			{"header", "no such key: marked-key", "no such key: [hidden]"},
			{"address", "Cannot POST /mcp?key=marked-long-query&v=1", "Cannot POST /mcp?key=[hidden]&v=1"},
			{"word of the address", "Access to the database is denied", "Access to the database is denied"},
			{"header of the protocol", "not acceptable: application/json", "not acceptable: application/json"},
		} {
			t.Run(c.name, func(t *testing.T) {
				cl := connect(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, c.body, http.StatusForbidden) },
					func(o *remote.Options) {
						o.URL += "/mcp?key=marked-long-query&v=1&features=database"
						o.Header = http.Header{"Authorization": {"Bearer " + token}, "X-Key": {"marked-key"}}
					})
				cl.send(call)
				cl.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 403 Forbidden: it refuses access; a credential may have too few rights: ` + c.want + `","data":{"source":"attache"}}}`)
				cl.close()
			})
		}
	}
}

// The error for the address of the older transport says which one to use.
func TestAddressOfOlderTransport(t *testing.T) {
	c := connect(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Cannot POST /v1/sse", 404) },
		func(o *remote.Options) { o.URL += "/v1/sse" })
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 404 Not Found: /sse is usually the address of the older transport HTTP+SSE; use that of Streamable HTTP, often /mcp: Cannot POST /v1/sse"…`)
	c.close()
}

// The error for a request that is not answered does not wait for the end of a body without meaning.
func TestU07OpenBody(t *testing.T) {
	t.Parallel()
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(202)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server took the request and does not answer it (HTTP 202 Accepted)…`)
	c.close()
}

// A refused notification is logged, and nothing reaches the client.
func TestRefusedNotification(t *testing.T) {
	for _, body := range []string{"go away", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"go away"}}`, `{"jsonrpc":"2.0","id":"server-error","error":{"code":1,"message":"go away"}}`} {
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method != "notifications/progress" {
				return false
			}
			w.WriteHeader(500)
			io.WriteString(w, body)
			return true
		}
		c := l.open(t)
		c.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
		c.send(call)
		c.expect(`{"jsonrpc":"2.0","id":1,"result":…`)
		for end := time.Now().Add(patience); !strings.Contains(c.log.String(), "go away"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the log does not say why: %s", c.log)
			}
		}
		c.close()
	}
}

// Compression that was not requested is decoded, or the answer is refused with the reason; so is
// the body of an error.
func TestU15Compressed(t *testing.T) {
	gzipped := func(text string) string {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		io.WriteString(z, text)
		z.Close()
		return b.String()
	}
	failed := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"`
	for _, c := range []struct {
		name           string
		status         int
		encoding, kind string
		body, want     string
	}{
		{"JSON", 200, "gzip", asJSON, gzipped(result), result},
		{"stream", 200, "GZIP", asEvents, gzipped("event: message\ndata: " + result + "\n\n"), result},
		{"identity", 200, "identity", asJSON, result, result},
		{"error", 500, "gzip", "text/plain", gzipped("out of order"), failed + "the server answered HTTP 500 Internal Server Error: out of order…"},
		{"not gzip", 200, "gzip", asJSON, result, failed + "the server's answer is not the gzip that it claims to be: …"},
		{"cut off", 200, "gzip", asJSON, gzipped(result)[:30], failed + "the connection to the server broke in the middle of its answer: …"},
		{"unknown", 200, "br", asJSON, result, failed + `the server's answer is compressed with \"br\", which was not asked for…`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := connect(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Content-Encoding", c.encoding)
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			cl.send(call)
			cl.expect(c.want)
			cl.close()
		})
	}
}
