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

// A server is one life of the server in a recording.
type server struct {
	*mempipe.Server
	started time.Time
	begun   int      // how many lines had reached the servers before it
	unsent  [][]byte // the lines that the server in the recording had not taken; set before Exit
}

// StartedAt returns when the server was started in the recording.
func (s *server) StartedAt() time.Time { return s.started }

// Returned returns the lines that it has not taken.
func (s *server) Returned() []byte { return slices.Concat(s.unsent...) }

// A sessionLost is the end of a session that a remote server has lost.
type sessionLost struct{ error }

// SessionLost implements the error of an upstream: see package remote.
func (sessionLost) SessionLost() {}

// start returns the next server, when the recording has come to its start.
func (p *play) start(ctx context.Context) (proxy.Upstream, error) {
	select {
	case s := <-p.starts:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A recordedExit is how a server ended.
type recordedExit record.Exit

// unsent reports whether a line has a request that the server had not taken.
func (e *recordedExit) unsent(line []byte) bool {
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
	var exit recordedExit
	if err := json.Unmarshal(e.Line, &exit); err != nil {
		return fmt.Errorf("%s: %w", e.At, err)
	}
	p.drain(p.out[toServer])
	for _, l := range p.out[toServer].got[p.up.begun:] {
		if exit.unsent(l.raw) {
			p.up.unsent = append(p.up.unsent, l.raw)
		}
	}
	var how error
	if exit.Status != "exit status 0" {
		how = errors.New(exit.Status)
	}
	if exit.SessionLost {
		how = sessionLost{errors.New(exit.Status)}
	}
	p.up.Exit(how)
	return nil
}

// next has the relay start another server.
func (p *play) next(e record.Event) error {
	var start record.Start
	if err := json.Unmarshal(e.Line, &start); err != nil {
		return fmt.Errorf("%s: %w", e.At, err)
	}
	p.provide(start.Time)
	return nil
}

// provide gives the relay another server to start.
func (p *play) provide(started time.Time) {
	p.up = &server{Server: mempipe.NewServer(0), started: started, begun: len(p.out[toServer].got)}
	p.out[toServer].pipe = p.up.In
	p.starts <- p.up
}
