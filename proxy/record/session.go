package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"
)

// Version is the version of the format.
const Version = 1

// The places where lines are recorded, in the order in which a request and its reply
// pass them. They are the values of proxy.Point.
const (
	ClientIn  = "client-in"
	ServerIn  = "server-in"
	ServerOut = "server-out"
	ClientOut = "client-out"
)

// The other events of a recording: the server ended during the session, another one was started
// in its place, and the server ended because the session had ended, while calls were running. Their
// lines are an Exit, a Start and an Exit.
const (
	ServerExit  = "server-exit"
	ServerStart = "server-start"
	ServerStop  = "server-stop"
)

// An Exit is the line of ServerExit and ServerStop; the latter has only the status.
type Exit struct {
	// Status describes how the server ended, such as "exit status 3", and further details
	// after a semicolon.
	Status string `json:"exit"`
	// SessionLost is true for a remote server that still runs but has lost the session.
	SessionLost bool `json:"session_lost"`
	// Unsent has the ids of the requests that the server did not read.
	Unsent []json.RawMessage `json:"unsent"`
}

// A Start is the line of ServerStart.
type Start struct {
	Time time.Time `json:"time"`
}

// A Header is the first line of a recording.
type Header struct {
	Version int `json:"version"`
	// Era is "legacy" or "modern", or "" if the messages of the client do not show it.
	Era string `json:"era"`
	// IDPrefix is the prefix of the ids of attache's own requests in this session.
	IDPrefix string `json:"id_prefix,omitempty"`
	// Server is the name of the server in rules.
	Server string `json:"server,omitempty"`
	// Start has the flags ("--workspace") and variables that described the session when it was
	// started, scrubbed.
	Start map[string]string `json:"given,omitempty"`
	// Scrubbed names the kinds of secrets that were replaced.
	Scrubbed []string `json:"scrubbed"`
}

// An Event is a line that passed, or the end or start of a server.
type Event struct {
	T    float64 // seconds since the start
	At   string
	Line []byte // with its line end; nil for a line that was too long to be held
}

// A Session is a recording.
type Session struct {
	Header Header
	Events []Event
	// Cut is set by Read if the last line of the file is incomplete, for example because the disk was
	// full. Events then ends before the last line that the client or server sent, because lines that it
	// caused may be missing.
	Cut bool
}

// event is the JSON form of an Event.
type event struct {
	T        float64 `json:"t"`
	At       string  `json:"at"`
	Frame    *string `json:"frame"`
	Base64   *string `json:"base64"`
	Partial  bool    `json:"partial"`
	Oversize bool    `json:"oversize"`
}

// Read reads a recording. An error names the line of the file.
func Read(r io.Reader) (*Session, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, errors.New("line 1: the file is empty: name a file that --record has written")
	}
	s, n := &Session{}, 0
	for line := range bytes.Lines(data) {
		n++
		if n > 1 && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if s.Cut = n > 1 && line[len(line)-1] != '\n' && !json.Valid(line); s.Cut {
			s.dropLastInput()
			break
		}
		if err := s.readLine(n, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s, nil
}

// dropLastInput removes the last line that the client or server sent, and what follows it.
func (s *Session) dropLastInput() {
	for n := len(s.Events) - 1; n >= 0; n-- {
		if at := s.Events[n].At; at == ClientIn || at == ServerOut {
			s.Events = s.Events[:n]
			return
		}
	}
}

func (s *Session) readLine(n int, line []byte) error {
	if n == 1 {
		if err := json.Unmarshal(line, &s.Header); err != nil || s.Header.Version == 0 {
			return errors.New("this is not the header of a recording, {\"version\":1,...}: name a file that --record has written")
		}
		if s.Header.Version != Version {
			return fmt.Errorf("the recording has version %d, but this attache reads version %d: record it again", s.Header.Version, Version)
		}
		return nil
	}
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	out, err := e.read()
	if err == nil {
		s.Events = append(s.Events, out)
	}
	return err
}

func (e *event) read() (Event, error) {
	out := Event{T: e.T, At: e.At}
	switch e.At {
	case ClientIn, ServerIn, ServerOut, ClientOut, ServerExit, ServerStart, ServerStop:
	default:
		return out, fmt.Errorf("unknown place %q: use client-in, server-in, server-out, client-out, server-exit, server-start or server-stop", e.At)
	}
	switch {
	case e.Oversize:
		return out, nil
	case e.Frame != nil:
		out.Line = []byte(*e.Frame)
	case e.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*e.Base64)
		if err != nil {
			return out, err
		}
		out.Line = b
	default:
		return out, errors.New("neither frame nor base64")
	}
	if !e.Partial {
		out.Line = append(out.Line, '\n')
	}
	return out, nil
}

// Write writes the recording in the form that [Read] reads.
func (s *Session) Write(w io.Writer) error {
	header, err := json.Marshal(s.Header)
	if err != nil {
		return err
	}
	data := append(header, '\n')
	for _, e := range s.Events {
		data = e.append(data)
	}
	_, err = w.Write(data)
	return err
}

// append appends the event as a line of the file.
func (e Event) append(dst []byte) []byte {
	dst = append(dst, `{"t":`...)
	dst = strconv.AppendFloat(dst, e.T, 'f', 6, 64)
	dst = append(append(append(dst, `,"at":"`...), e.At...), `",`...)
	frame, whole := bytes.CutSuffix(e.Line, []byte{'\n'})
	switch {
	case e.Line == nil:
		return append(dst, "\"oversize\":true}\n"...)
	case utf8.Valid(frame):
		dst = append(dst, `"frame":`...)
		dst = appendQuoted(dst, frame)
	default:
		dst = append(dst, `"base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, frame)
		dst = append(dst, '"')
	}
	if !whole {
		dst = append(dst, `,"partial":true`...)
	}
	return append(dst, "}\n"...)
}

// appendQuoted appends s as a JSON string. It does not escape <, > and &, for people who
// read the file.
func appendQuoted(dst, s []byte) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(string(s)) // never fails for a string
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}
