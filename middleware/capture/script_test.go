package capture_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// TestScripts plays testdata/*.txt. In a script
//
//	layers capture=ANSWER,ANSWER...
//
// lists the answers of successive look-ups; the last answer repeats:
//
//	USER[:PERMISSION...]   the principal
//	key                    a user named after the credential; nobody without a credential
//	refused                the credential is refused
//	down                   a temporary failure
//	away                   the source of principals does not answer
//	DURATION/ANSWER        the answer takes that long
//	accept                 not an answer: credentials in _meta are accepted
//	known=USER             not an answer: the owner of messages without a credential
//
// Each look-up of a credential adds a note, and each frame adds a note with its principal. The notification
// test/recheck makes the layer look up every owner again.
func TestScripts(t *testing.T) {
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{"capture": scriptedLayer}}.Play(t, "testdata/*.txt")
}

var (
	errRefused = errors.New("refused")
	errDown    = errors.New("down")
	errAway    = errors.New("away")
)

func scriptedLayer(s *proxytest.Session, arg string) middleware.Layer {
	o := capture.Options{
		Passing:    func(err error) bool { return errors.Is(err, errDown) || errors.Is(err, errAway) },
		Unanswered: func(err error) bool { return errors.Is(err, errAway) },
	}
	conn := capture.ConnOptions{Log: logNotes(s)}
	a := &answers{s: s}
	for word := range strings.SplitSeq(arg, ",") {
		if word == "accept" {
			o.Accept = capture.CredentialKeys()
			continue
		}
		if user, ok := strings.CutPrefix(word, "known="); ok {
			conn.Known = func(*wire.Message) (*sessionstate.Principal, error, bool) {
				return &sessionstate.Principal{User: user}, nil, true
			}
			continue
		}
		a.words = append(a.words, word)
	}
	o.Identify = a.identify
	shared, err := capture.Compile(o)
	if err != nil {
		panic(err) // a mistake in the script
	}
	c := shared.Connect(conn)
	layer := c.Layer()
	wrap := layer.Wrap
	layer.Wrap = func(next middleware.Handler) middleware.Handler {
		return wrap(func(ctx context.Context, m *wire.Message) error {
			switch {
			case m.MethodIs("notifications/test/recheck"):
				c.Recheck()
			case m.From == wire.Client:
				s.Note("%s", principalOf(middleware.CallFrom(ctx)))
			}
			return next(ctx, m)
		})
	}
	return layer
}

// principalOf describes the principal that inner layers see.
func principalOf(call *middleware.Call) string {
	view := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context)
	text := "nobody"
	if p := view.Principal; p != nil {
		text = strings.Join(append([]string{p.User}, p.Permissions...), ":")
	}
	trust, _ := view.Lookup("session.trust")
	if err := view.Unidentified; err != nil {
		return text + " " + trust.Value + ": " + err.Error()
	}
	return text
}

// answers has the answers of successive look-ups.
type answers struct {
	s     *proxytest.Session
	mu    sync.Mutex
	words []string
}

func (a *answers) identify(ctx context.Context, c capture.Credential) (*sessionstate.Principal, error) {
	a.mu.Lock()
	answer := a.words[0]
	if len(a.words) > 1 {
		a.words = a.words[1:]
	}
	a.mu.Unlock()
	if c.Text != "" {
		a.s.Note("asked %s", c.Text)
	}
	if after, rest, ok := strings.Cut(answer, "/"); ok {
		d, _ := time.ParseDuration(after)
		answer = rest
		time.Sleep(d) // on the bubble's clock
	}
	switch answer {
	case "refused":
		return &sessionstate.Principal{User: "operator"}, errRefused
	case "down":
		return nil, errDown
	case "away":
		return nil, errAway
	case "key":
		if c.Text == "" {
			return nil, nil
		}
		return &sessionstate.Principal{User: c.Text}, nil
	}
	words := strings.Split(answer, ":")
	return &sessionstate.Principal{User: words[0], Permissions: words[1:]}, nil
}

// logNotes returns a logger that writes each message as a note of the script.
func logNotes(s *proxytest.Session) *slog.Logger {
	return slog.New(testkit.LogHandler(func(_ context.Context, r slog.Record) { s.Note("%s", r.Message) }))
}
