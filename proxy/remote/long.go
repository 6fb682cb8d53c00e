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
	x.body.long = from
	x.whole = make(chan struct{})
	x.peek(chunk)
	s.calls.Add(1)
	go func() {
		defer s.calls.Done()
		x.run()
	}()
	var env wire.Envelope
	for more := true; more; {
		env.Feed(chunk)
		size += int64(len(chunk))
		_, _ = to.Write(chunk) // if the server does not read, the rest is read and dropped
		var err error
		if chunk, more, err = r.Next(); err != nil {
			chunk, more = nil, false // run will get the error again
		}
	}
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
	d := json.NewDecoder(bytes.NewReader(beginning[:min(len(beginning), maxPeek)]))
	var m struct{ method, name, uri, version string }
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return
	}
	members(d, func(key string) bool {
		switch key {
		case "method":
			return text(d, &m.method)
		case "params":
			return object(d, func(key string) bool {
				switch key {
				case "name":
					return text(d, &m.name)
				case "uri":
					return text(d, &m.uri)
				case "_meta":
					return object(d, func(key string) bool {
						if key == versionKey {
							return text(d, &m.version)
						}
						return skip(d)
					})
				}
				return skip(d)
			})
		}
		return skip(d)
	})
	x.method = m.method
	if m.version != "" {
		x.mirrorTexts(m.version, m.method, m.name, m.uri)
	}
}

// members calls f for each remaining member of the object that d is in. f reads the value, and reports
// false if it cannot.
func members(d *json.Decoder, f func(key string) bool) bool {
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok || !f(key) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

// object is members for the object that follows.
func object(d *json.Decoder, f func(key string) bool) bool {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	return members(d, f)
}

func text(d *json.Decoder, to *string) bool { return d.Decode(to) == nil }

func skip(d *json.Decoder) bool {
	var raw json.RawMessage
	return d.Decode(&raw) == nil
}
