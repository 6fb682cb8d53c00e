package remote

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/attache-mcp/attache/proxy/wire"
)

// sendLong sends a message over the hold limit while it arrives, and returns its length. chunk is its
// first part. It cannot be sent again. Nothing is answered before its end, where the id may be. It is not
// in the table of open requests, so it takes no slot and a cancellation does not find it.
func (s *Server) sendLong(r *wire.Reader, chunk []byte) (size int64) {
	from, to := io.Pipe()
	x := s.newExchange()
	// A pipe holds nothing: the relay is read as fast as the server reads.
	x.body.long = from
	x.whole = make(chan struct{})
	x.peek(chunk)
	// run does not count it, because first is nil: whether it is a request is known only at its end.
	s.calls.Go(x.run)
	var env wire.Envelope
	for more := true; more; {
		// The Envelope keeps the id, wherever it is, and little else.
		env.Feed(chunk)
		size += int64(len(chunk))
		_, _ = to.Write(chunk) // if the server does not read, the rest is read and dropped
		var err error
		if chunk, more, err = r.Next(); err != nil {
			chunk, more = nil, false // run will get the error again
		}
	}
	// The last chunk has the line end, which is no part of the message.
	env.Feed(chunk)
	_, _ = to.Write(bytes.TrimRight(chunk, "\r\n"))
	x.await(wire.Oversize(wire.Client, &env))
	close(x.whole)
	to.Close()
	return size + int64(len(chunk))
}

// maxPeek is how many bytes of a long message peek reads.
const maxPeek = 64 << 10

// peek reads revision, method and name from the beginning of a long message, for the headers that
// mirror them: the headers leave before the end has arrived. If _meta comes after the first maxPeek bytes,
// the message is sent without them.
func (x *exchange) peek(beginning []byte) {
	// encoding/json is good enough here: the headers repeat what is sent, and attache decides nothing by them.
	d := json.NewDecoder(bytes.NewReader(beginning[:min(len(beginning), maxPeek)]))
	var method, name, uri, version string
	find(d, map[string]any{
		"method": &method,
		"params": map[string]any{"name": &name, "uri": &uri, "_meta": map[string]any{versionKey: &version}},
	})
	x.method = method
	if version != "" {
		x.mirrorTexts(version, method, name, uri)
	}
}

// find reads the object that follows. wanted has, by name, a *string for a member whose text is wanted,
// and the members wanted of an object. find reports false if it cannot read the whole object.
func find(d *json.Decoder, wanted map[string]any) bool {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return false
		}
		switch to := wanted[key].(type) {
		case map[string]any:
			ok = find(d, to)
		case *string:
			ok = d.Decode(to) == nil
		default:
			ok = d.Decode(new(json.RawMessage)) == nil
		}
		if !ok {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}
