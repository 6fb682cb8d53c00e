// Package errorstatus chooses the HTTP status of an error that answers a request.
package errorstatus

import (
	"strings"

	"github.com/attache-mcp/attache/proxy/internal/httpstatus"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Of returns the HTTP status for an error that is sent as JSON, and the value of Retry-After, "" for none.
// beside is the wire.Message.Beside of the reply. modern says that the request is of revision 2026-07-28 or
// later.
func Of(request *wire.Message, reply []byte, beside any, modern bool) (status int, after string) {
	if status, after = httpstatus.Of(beside); status != 0 {
		return status, after
	}
	var m wire.Message
	m.Reset(wire.Server, reply)
	if !m.LookEnvelope() || m.Kind() != wire.Error {
		return 200, ""
	}
	failure := m.ErrorObject()
	code, data := string(failure.Get("code").Raw), failure.Get("data")
	if code == "-32603" && data.Get("source").Equals("attache") {
		exited := strings.HasPrefix(failure.Get("message").Text(), "the server ended before") ||
			data.Get("reason").Equals("server_ended") && string(data.Get("restarted").Raw) == "true"
		switch discover := request.MethodIs("server/discover"); {
		case discover && exited:
			return 404, "" // a legacy server: those made with rmcp exit at any first request other than initialize
		case discover || request.MethodIs("initialize"):
			return 503, "1" // no server; another status would tell the client an era
		}
	}
	if !modern {
		return 200, ""
	}
	switch code {
	case "-32601":
		return 404, ""
	case "-32602", "-32020", "-32021", "-32022":
		return 400, ""
	}
	return 200, ""
}
