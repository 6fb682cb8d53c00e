package revive

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// An Ending says how a server ended.
type Ending struct {
	Exit string // "exit status 3"
	More string // what else is known, such as the last lines of its stderr: "" or "; …"
	lost bool   // the server lives, and has lost the session alone
}

// A sessionLost is the end of a session with a server that lives, but does not know the
// session any more.
type sessionLost interface {
	error
	SessionLost()
}

// NewEnding reads what Upstream.Wait says of an end.
func NewEnding(how error) Ending {
	if how == nil {
		return Ending{Exit: "exit status 0"}
	}
	exit, more, found := strings.Cut(how.Error(), ";")
	if found {
		more = ";" + more
	}
	return Ending{exit, more, errors.As(how, new(sessionLost))}
}

// Err returns what [NewEnding] was given.
func (e Ending) Err() error {
	if e.Clean() && e.More == "" {
		return nil
	}
	return errors.New(e.Exit + e.More)
}

// Clean reports whether the server left of its own accord.
func (e Ending) Clean() bool { return e.Exit == "exit status 0" }

// Lost returns the answer to a call that may have run when the server ended (R9). The client gets
// it at once: it would learn nothing more by waiting for the next server. often says that one like
// it was running the last time too (R14), which is known only of calls that attache repeats.
func (e Ending) Lost(id []byte, often bool) *wire.Message {
	text := e.what() + " while this call was running; it may or may not have taken effect; " +
		e.next() + ", and what it kept in memory is gone: check before repeating a call that changes something"
	if often {
		text += "; a call like this was running the last time it ended, too, so attache does not send it again"
	}
	return e.reply(id, text+e.More, true)
}

// what says what has happened.
func (e Ending) what() string {
	if e.lost {
		return "the server has lost the session (" + e.Exit + ")"
	}
	return "the server ended (" + e.Exit + ")"
}

// next says what attache does about it.
func (e Ending) next() string {
	if e.lost {
		return "another session is being opened"
	}
	return "the server is being started again"
}

// Unsent returns the answer to a call that did not reach a server.
func (e Ending) Unsent(id []byte) *wire.Message {
	return e.reply(id, e.what()+" and is not ready again; this call was not sent to it: try again later"+e.More, false)
}

func (e Ending) reply(id []byte, text string, restarted bool) *wire.Message {
	reason := "server_ended"
	if e.lost {
		reason = "session_lost"
	}
	data := fmt.Sprintf(`{"source":"attache","reason":%q,"restarted":%t,"exit":%s}`, reason, restarted, wire.Quote(e.Exit))
	return wire.ErrorReplyWith(id, wire.CodeInternalError, text, []byte(data))
}

// A restart is when a server lost its memory, and how: a format with the place of its name.
type restart struct {
	at  time.Time
	did string
}

const (
	restarted   = "the server%s was restarted"
	lostSession = "the server%s has lost the session, and another one was opened"
	openedAgain = "the session with the server%s was opened again"
)

// did says how the server lost its memory.
func (e Ending) did() string {
	if e.lost {
		return lostSession
	}
	return restarted
}

// notice returns the block that tells the model of it (R10).
func (r restart) notice(name string) []byte {
	if name != "" {
		name = " " + name
	}
	text := "attache: " + fmt.Sprintf(r.did, name) + " at " + r.at.UTC().Format("15:04 MST") +
		"; what it kept in memory (open pages, connections, working directory) is gone."
	return append(append([]byte(`{"type":"text","text":`), wire.Quote(text)...), '}')
}

// EndText says to a client why its request has no answer whose server has ended.
func EndText(how error) string {
	if how == nil {
		return "the server ended before it answered"
	}
	return "the server ended before it answered: " + how.Error()
}
