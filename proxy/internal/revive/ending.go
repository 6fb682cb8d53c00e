package revive

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// An Ending describes how a server ended.
type Ending struct {
	Exit string // "exit status 3"
	More string // details such as the last lines of its stderr: "" or "; …"
	lost bool   // the server still runs, and has only lost the session
}

// A sessionLost is the error of a server that still runs, but has lost the session.
type sessionLost interface {
	error
	SessionLost()
}

// NewEnding returns the Ending for the error of Upstream.Wait.
func NewEnding(err error) Ending {
	if err == nil {
		return Ending{Exit: "exit status 0"}
	}
	// The text is that of proxy.Upstream.Wait: how it ended and, after a semicolon, what else is known.
	exit, more, found := strings.Cut(err.Error(), ";")
	if found {
		more = ";" + more
	}
	return Ending{exit, more, errors.As(err, new(sessionLost))}
}

// Err returns an error with the text of that passed to [NewEnding], nil if that was nil. It no longer
// says whether the session was lost.
func (e Ending) Err() error {
	if e.Clean() && e.More == "" {
		return nil
	}
	return errors.New(e.Exit + e.More)
}

// Clean reports whether the server ended by itself without an error.
func (e Ending) Clean() bool { return e.Exit == "exit status 0" }

// Lost returns the answer to a call that may have run when the server ended (R9). The client gets
// it at once, because the next server could not answer the call either. often reports that an equal
// call was running the last time too (R14), which is known only for calls that attache repeats.
func (e Ending) Lost(id []byte, often bool) *wire.Message {
	what, next := e.words()
	text := what + " while this call was running; it may or may not have taken effect; " +
		next + ", and what it kept in memory is gone: check before repeating a call that changes something"
	if often {
		text += "; a call like this was running the last time it ended, too, so attache does not send it again"
	}
	return e.reply(id, text+e.More, true)
}

// words describes what has happened, and what attache does next.
func (e Ending) words() (what, next string) {
	if e.lost {
		return "the server has lost the session (" + e.Exit + ")", "another session is being opened"
	}
	return "the server ended (" + e.Exit + ")", "the server is being started again"
}

// Unsent returns the answer to a call that did not reach a server.
func (e Ending) Unsent(id []byte) *wire.Message {
	what, _ := e.words()
	return e.reply(id, what+" and is not ready again; this call was not sent to it: try again later"+e.More, false)
}

// reply returns an error whose data tell programs what its text tells the model.
func (e Ending) reply(id []byte, text string, restarted bool) *wire.Message {
	reason := "server_ended"
	if e.lost {
		reason = "session_lost"
	}
	data := fmt.Sprintf(`{"source":"attache","reason":%q,"restarted":%t,"exit":%s}`, reason, restarted, wire.Quote(e.Exit))
	return wire.ErrorReplyWith(id, wire.CodeInternalError, text, []byte(data))
}

// ExitLine returns the line of a recording for a server that has ended (R19). unsent has the
// lines that the server did not read.
func (e Ending) ExitLine(unsent ...[]byte) []byte {
	var ids [][]byte
	for line := range bytes.Lines(bytes.Join(unsent, nil)) {
		for m := range Requests(wire.Parse(wire.Client, line)) {
			ids = append(ids, bytes.Clone(m.ID()))
		}
	}
	return fmt.Appendf(nil, `{"exit":%s,"session_lost":%t,"unsent":[%s]}`+"\n", wire.Quote(e.Exit+e.More), e.lost, bytes.Join(ids, []byte{','}))
}

// StopLine returns the line of a recording for a server that ended because its session had ended.
func (e Ending) StopLine() []byte {
	return fmt.Appendf(nil, `{"exit":%s}`+"\n", wire.Quote(e.Exit+e.More))
}

// A restart is an event at which the server lost its memory.
type restart struct {
	at     time.Time
	format string // of the sentence for the model, with the place for the server's name
}

func (e Ending) restart(at time.Time) *restart {
	if e.lost {
		return &restart{at, "the server%s has lost the session, and another one was opened"}
	}
	return &restart{at, "the server%s was restarted"}
}

// notice returns the content block about the restart for the model (R10).
func (r restart) notice(name string) []byte {
	if name != "" {
		name = " " + name
	}
	text := "attache: " + fmt.Sprintf(r.format, name) + " at " + r.at.UTC().Format("15:04 MST") +
		"; what it kept in memory (open pages, connections, working directory) is gone."
	return append(append([]byte(`{"type":"text","text":`), wire.Quote(text)...), '}')
}

// EndText returns the error text for a request whose server ended before it answered.
func EndText(err error) string {
	if err == nil {
		return "the server ended before it answered"
	}
	return "the server ended before it answered: " + err.Error()
}
