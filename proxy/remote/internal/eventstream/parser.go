// Package eventstream reads the streams of events in which servers answer.
package eventstream

import (
	"bytes"
	"strconv"
	"time"

	"github.com/attache-mcp/attache/proxy/remote/internal/outbox"
)

// A Sink receives what a Parser reads.
type Sink interface {
	// Data receives a part of the data of the current event. It must not keep b.
	Data(b []byte)
	// Event is called at the end of an event. name is its type, empty for "message".
	Event(name []byte)
}

// A Parser reads a body of type text/event-stream (WHATWG HTML, "Server-sent
// events"). It keeps no data, so an event may have any size. If the data has several lines, it joins
// them with a space and not with a line feed: in JSON both mean the same, and the message must stay on
// one line. A comment is a field without a name, and unknown fields are ignored.
type Parser struct {
	sink Sink

	// ID is that of the last event that had one.
	ID []byte
	// Retry is how long to wait before the stream is resumed; negative if the server has not set it.
	Retry time.Duration

	state   parserState
	bom     int    // bytes of a byte order mark read so far; 3 once it is too late for one
	skipLF  bool   // the last line ended with CR, so a following LF belongs to it
	field   []byte // name of the current field
	value   []byte // its value, unless it is data
	long    bool   // the value is too long to be kept
	name    []byte // type of the current event
	nextID  []byte // id of the current event
	hasID   bool
	hasData bool
}

type parserState uint8

const (
	atLine  parserState = iota // at the start of a line
	inField                    // in the name of a field
	atValue                    // after the colon
	inValue                    // an optional space was skipped
)

const (
	// maxField is how many bytes of a field's name are kept, more than any known name has.
	maxField = 8
	// maxValue is how many bytes an id, a type or a retry time may have.
	maxValue = 8 << 10
	mark     = "\xEF\xBB\xBF"
)

// New returns a parser for a stream.
func New(sink Sink) *Parser { return &Parser{sink: sink, Retry: -1} }

// Feed reads the next bytes of the stream.
func (p *Parser) Feed(b []byte) {
	// A body that begins with a part of a mark has lost it here. No field begins with such bytes.
	for ; p.bom < len(mark) && len(b) > 0; b = b[1:] {
		if b[0] != mark[p.bom] {
			p.bom = len(mark)
			break
		}
		p.bom++
	}
	for len(b) > 0 {
		switch p.state {
		case atLine:
			b = p.startLine(b)
		case inField:
			b = p.readField(b)
		case atValue:
			if b[0] == ' ' {
				b = b[1:]
			}
			p.state = inValue
		case inValue:
			b = p.readValue(b)
		}
	}
}

// startLine reads the first byte of a line. An empty line ends the event.
func (p *Parser) startLine(b []byte) []byte {
	// CR, LF and CRLF end a line, and the two bytes of the last may come in two reads.
	skip := p.skipLF
	p.skipLF = false
	switch {
	case skip && b[0] == '\n':
		return b[1:]
	case b[0] == '\n', b[0] == '\r':
		p.skipLF = b[0] == '\r'
		p.dispatch()
		return b[1:]
	}
	p.field = p.field[:0]
	p.state = inField
	return b
}

// readField reads the name of a field, up to the colon or the end of the line.
func (p *Parser) readField(b []byte) []byte {
	i := bytes.IndexAny(b, ":\r\n")
	name := b
	if i >= 0 {
		name = b[:i]
	}
	p.field = append(p.field, name[:min(len(name), maxField-min(len(p.field), maxField))]...)
	switch {
	case i < 0:
		return nil
	case b[i] == ':':
		p.beginValue()
		p.state = atValue
	default: // a line without a colon is a field with an empty value
		p.beginValue()
		p.endLine(b[i])
	}
	return b[i+1:]
}

func (p *Parser) beginValue() {
	p.value, p.long = p.value[:0], false
	if p.isData() {
		// This is not the event's first line of data. See Parser for the space.
		if p.hasData {
			p.sink.Data([]byte{' '})
		}
		p.hasData = true
	}
}

func (p *Parser) isData() bool { return string(p.field) == "data" }

// readValue reads the value of a field, up to the end of the line.
func (p *Parser) readValue(b []byte) []byte {
	end := outbox.LineBreak(b)
	switch part := b[:end]; {
	case len(part) == 0:
	case p.isData():
		p.sink.Data(part)
	case len(p.value)+len(part) > maxValue:
		p.long = true
	default:
		p.value = append(p.value, part...)
	}
	if end == len(b) {
		return nil
	}
	p.endLine(b[end])
	return b[end+1:]
}

// endLine handles the current field, whose line ended with c.
func (p *Parser) endLine(c byte) {
	p.state, p.skipLF = atLine, c == '\r'
	// A part of an id or of a number would be another one.
	if p.long {
		return
	}
	switch string(p.field) {
	case "event":
		p.name = append(p.name[:0], p.value...)
	case "id":
		// By the standard such an id is ignored.
		if bytes.IndexByte(p.value, 0) < 0 {
			p.nextID, p.hasID = append(p.nextID[:0], p.value...), true
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(p.value), 10, 31); err == nil {
			p.Retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// dispatch ends the current event. Its id counts even if it has no data.
func (p *Parser) dispatch() {
	p.TakeID()
	p.sink.Event(p.name)
	p.name, p.hasData = p.name[:0], false
}

// TakeID sets ID to that of the current event, if it has one.
func (p *Parser) TakeID() {
	if p.hasID {
		p.ID, p.nextID, p.hasID = append(p.ID[:0], p.nextID...), p.nextID[:0], false
	}
}

// Restart prepares the parser for a stream that resumes this one. ID and Retry stay: the next stream is
// resumed after that id, and not before that time.
func (p *Parser) Restart() {
	p.state, p.bom, p.skipLF = atLine, 0, false
	p.name, p.nextID, p.hasID, p.hasData = p.name[:0], p.nextID[:0], false, false
}
