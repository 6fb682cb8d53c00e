package remote_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// After a refusal of the headers of a call, attache reads each page of the list once.
func TestU21ListOfTwoPages(t *testing.T) {
	var pages atomic.Int32
	s := &modern{}
	s.answer = func(w http.ResponseWriter, r request) bool {
		w.Header().Set("Content-Type", asJSON)
		switch {
		case r.method == "tools/list":
			pages.Add(1)
			page := `{"tools":[],"nextCursor":"page \"2\""}`
			if strings.Contains(r.body, `"cursor":"page \"2\""`) {
				page = annotatedTools
			}
			io.WriteString(w, `{"jsonrpc":"2.0","id":"attache-tools","result":`+page+`}`)
		case r.method == "tools/call" && r.Get("Mcp-Param-Region") != "eu":
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"Header mismatch"}}`)
		default:
			return false
		}
		return true
	}
	c := connect(t, s.ServeHTTP)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},` + modernMeta + `}}`)
	c.expect(`{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete"}}`)
	c.close()
	if n := pages.Load(); n != 2 {
		t.Errorf("%d pages were requested", n)
	}
}
