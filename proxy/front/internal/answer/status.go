package answer

import (
	"strings"

	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/internal/httpstatus"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Request is the request that a response answers, or the first one of an array.
type Request struct {
	Raw        []byte           // the id as the client wrote it
	Recorder   *outbox.Recorder // nil if the client may not take up the stream again
	Initialize bool
	Discovers  bool // server/discover
	Modern     bool // its revision has no handshake
}

// status returns the HTTP status for an error that answers q and is sent as JSON, and the value of Retry-After,
// "" for none. The status of a remote server comes first. attache's own errors have a status if they answer
// initialize or server/discover, by which a client finds its revision. 2026-07-28 has a status for some codes of
// any error. In earlier revisions an error is a normal reply, with 200.
func (q *Request) status(reply outbox.Item) (status int, after string) {
	if status, after = httpstatus.Of(reply.Beside); status != 0 {
		return status, after
	}
	var m wire.Message
	m.Reset(wire.Server, reply.Data)
	if !m.LookEnvelope() || m.Kind() != wire.Error {
		return 200, ""
	}
	failure := m.ErrorObject()
	code, data := string(failure.Get("code").Raw), failure.Get("data")
	if code == "-32603" && data.Get("source").Equals("attache") {
		exited := strings.HasPrefix(failure.Get("message").Text(), "the server ended before") ||
			data.Get("reason").Equals("server_ended") && string(data.Get("restarted").Raw) == "true"
		switch {
		case q.Discovers && exited:
			return 404, "" // a legacy server: those made with rmcp exit at any first request other than initialize
		case q.Discovers || q.Initialize:
			return 503, "1" // no server; another status would tell the client an era
		}
	}
	if !q.Modern {
		return 200, ""
	}
	switch code {
	case "-32601":
		return 404, ""
	case "-32602", "-32020", "-32021", "-32022": // as go-sdk's server does: HTTP.md, section 1.2
		return 400, ""
	}
	return 200, ""
}
