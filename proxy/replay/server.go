package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/record"
)

// A server is one run of the server in a recording.
type server struct {
	*mempipe.Server
	started time.Time
	before  int      // how many lines had reached earlier servers
	unsent  [][]byte // the lines that the server in the recording did not read; set before Exit
}

// StartedAt returns when the server was started in the recording.
func (s *server) StartedAt() time.Time { return s.started }

// Returned returns the lines that the server did not read.
func (s *server) Returned() []byte { return slices.Concat(s.unsent...) }

type sessionLost struct{ error }

// SessionLost marks the error as that of package remote does.
func (sessionLost) SessionLost() {}

// start returns the next server as soon as the replay has reached its start.
func (p *play) start(ctx context.Context) (proxy.Upstream, error) {
	select {
	case s := <-p.starts:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// isUnsent reports whether a line has a request that the server did not read before the exit.
func isUnsent(e record.Exit, line []byte) bool {
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	all := make([]message, 1)
	if json.Unmarshal(line, &all[0]) != nil && json.Unmarshal(line, &all) != nil {
		return false
	}
	return slices.ContainsFunc(all, func(m message) bool {
		return m.Method != "" && slices.ContainsFunc(e.Unsent, func(id json.RawMessage) bool { return bytes.Equal(id, m.ID) })
	})
}

// exit ends the server as it ended in the recording.
func (p *play) exit(e record.Event) error {
	var exit record.Exit
	if err := json.Unmarshal(e.Line, &exit); err != nil {
		return fmt.Errorf("%s: %w", e.At, err)
	}
	p.drain(&p.toServer)
	for _, l := range p.toServer.got[p.up.before:] {
		if isUnsent(exit, l.raw) {
			p.up.unsent = append(p.up.unsent, l.raw)
		}
	}
	how := statusError(exit)
	if exit.SessionLost {
		how = sessionLost{errors.New(exit.Status)}
	}
	p.up.Exit(how)
	return nil
}

// statusError returns the error of a server that ended in this way.
func statusError(exit record.Exit) error {
	if exit.Status == "exit status 0" {
		return nil
	}
	return errors.New(exit.Status)
}

// stop notes how the server ended after the session. Only answers that contain that follow.
func (p *play) stop(e record.Event) error {
	var exit record.Exit
	if err := json.Unmarshal(e.Line, &exit); err != nil {
		return fmt.Errorf("%s: %w", e.At, err)
	}
	p.stopped, p.ended = true, statusError(exit)
	return nil
}

// next starts another server as it was started in the recording.
func (p *play) next(e record.Event) error {
	var start record.Start
	if err := json.Unmarshal(e.Line, &start); err != nil {
		return fmt.Errorf("%s: %w", e.At, err)
	}
	p.provide(start.Time)
	return nil
}

// provide provides another server for the relay to start.
func (p *play) provide(started time.Time) {
	p.up = &server{Server: mempipe.NewServer(0), started: started, before: len(p.toServer.got)}
	p.toServer.pipe = p.up.In
	p.starts <- p.up
}
