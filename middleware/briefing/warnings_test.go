package briefing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate"
)

// scopeSource answers as answers says for the scope.
type scopeSource struct{ answers map[string]error }

func (s scopeSource) Effective(_ context.Context, q policy.Query) (policy.Effective, error) {
	return policy.Effective{Objectives: []string{"one"}}, s.answers[q.Scope]
}

// A process that serves for months reports each outage of the source, and its end, but not each of many
// in a minute. Of the sessions whose credential or scope is refused it reports one of each user in an hour.
func TestSourceWarnings(t *testing.T) { synctest.Test(t, testSourceWarnings) }

func testSourceWarnings(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	source := scopeSource{map[string]error{}}
	shared := Compile(Options{Source: source, Log: logger})
	sessions := 0
	begin := func(user, scope string) {
		sessions++
		view := sessionOf(fmt.Sprint("session ", sessions), "w")
		view.Principal = &sessionstate.Principal{User: user, Scope: scope}
		c := shared.Connect(ConnOptions{Log: logger.With("user", user)})
		<-c.open(view, "").ready
	}
	for _, step := range []struct {
		name, user string
		err        error
		want       []string
	}{
		{"first", "ada", nil, nil},
		{"outage", "ada", errors.New("timeout"), []string{"could not be read"}},
		{"outage goes on", "eve", errors.New("timeout"), nil},
		{"outage ends", "eve", nil, []string{"can be read again"}},
		{"still well", "eve", nil, nil},
		{"it comes and goes", "eve", errors.New("timeout"), nil},
		{"it came and went", "eve", nil, nil},
		{"refused", "ada", policy.ErrUnauthorized, []string{"refused the credential", "user=ada"}},
		{"another is refused", "eve", policy.ErrUnauthorized, []string{"refused the credential", "user=eve"}},
		{"unknown scope", "ada", policy.ErrUnknownScope, []string{"does not know the scope", "user=ada"}},
		{"another unknown scope", "eve", policy.ErrUnknownScope, []string{"does not know the scope", "user=eve"}},
		{"a second session of one who is refused", "ada", policy.ErrUnauthorized, nil},
		{"a second session with the unknown scope", "eve", policy.ErrUnknownScope, nil},
		{"second outage", "ada", errors.New("timeout"), []string{"could not be read"}},
		{"an answer, although a refusal", "ada", policy.ErrUnknownScope, []string{"can be read again", "does not know the scope"}},
	} {
		if step.name == "second outage" {
			time.Sleep(refusedTime)
		}
		log.Reset()
		source.answers["acme"] = step.err
		begin(step.user, "acme")
		for _, want := range step.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %q: %s", step.name, want, &log)
			}
		}
		if step.want == nil && log.Len() > 0 {
			t.Errorf("%s: the log has %s", step.name, &log)
		}
	}
	time.Sleep(refusedTime)
	log.Reset()
	source.answers["acme"] = policy.ErrUnauthorized
	for i := range maxRefusals + 2 {
		begin(fmt.Sprint("user ", i), "acme")
	}
	if n := strings.Count(log.String(), "refused the credential; "); n != maxRefusals {
		t.Errorf("%d refusals are logged within an hour, want %d", n, maxRefusals)
	}
}
