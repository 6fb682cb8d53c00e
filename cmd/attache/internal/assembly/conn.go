package assembly

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/sessionstate"
)

// ConnOptions are what one connection brings.
type ConnOptions struct {
	// Control is that of the relay. It notifies the client of changed lists, and
	// rules are replaced; without it neither happens.
	Control *proxy.Control
	// IDPrefix begins the ids of attache's own requests where the session is recorded
	// or played; "" leaves it to the relay.
	IDPrefix string
	// Replayed gives the spans of a session that is played again; see trace.ConnOptions.
	Replayed func(id []byte) string
	// Status, if not nil, counts what the layers do.
	Status *status.Recorder
	// Client is who is served in a front, nil for the client that started the process.
	Client *Client
	// Log gets what is worth telling of this connection; nil for that of the process.
	Log *slog.Logger
}

// A Conn is one client connection: its layers, and what they know of it. Close it
// when the relay has returned.
type Conn struct {
	ConnOptions
	capture  *capture.Conn
	announce announce.Announce
	catalog  middleware.Catalog
	briefed  briefing.Memory
	spans    trace.OpenSpans
	results  toolresult.Memory
	audit    *audit.Conn // nil without an audit
	shared   atomic.Pointer[Shared]

	mu       sync.Mutex
	layers   []middleware.Layer
	briefing *briefing.Conn // of layers; nil without one
	closed   bool
}

// Connect makes the state of a client connection, under the configuration that is in
// force.
func (s *Shared) Connect(o ConnOptions) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s = s.current
	c := &Conn{ConnOptions: o}
	if c.Log == nil {
		c.Log = s.Log
	}
	conn := capture.ConnOptions{
		Base:     s.baseContext(o.Client),
		Sessions: sessionstate.NewSessions(sessionstate.SessionsOptions{TTL: s.settings.Session.TTL}),
		Changed:  func() { c.tell(c.shared.Load().lists) },
		Log:      c.Log,
	}
	if o.Client != nil {
		conn.Namespace, conn.Session = o.Client.Namespace, o.Client.Session
		conn.Identify, conn.Known = s.process.identifyClient(o.Client), s.process.knownClient(o.Client)
	}
	if o.IDPrefix != "" { // a recording has it, so the key is the same when it is played
		conn.Name = "connection-" + strings.Trim(strings.TrimPrefix(o.IDPrefix, ownIDs), "-")
	}
	c.capture = s.capture.Connect(conn)
	if s.audit != nil {
		c.audit = s.audit.Connect(audit.ConnOptions{
			Redact: func(raw []byte) []byte { return c.shared.Load().scrub.looks.Line(raw) },
			Scrub:  func(record []byte) []byte { return c.shared.Load().scrub.known.Line(record) },
		})
	}
	c.use(s)
	s.conns[c] = struct{}{}
	return c
}

// use puts s in force on the connection.
func (c *Conn) use(s *Shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.shared.Store(s)
	c.layers = c.chain(s)
	if c.Control != nil {
		c.Control.Replace(proxy.Rules{Layers: c.layers, DryRun: s.settings.DryRun})
	}
}

// tell tells the client that lists have changed.
func (c *Conn) tell(lists []announce.List) {
	if c.Control == nil {
		return
	}
	for _, m := range c.announce.Changed(lists...) {
		c.Control.Notify(m)
	}
}

// Relay returns the options of a relay with the connection's layers.
func (c *Conn) Relay() proxy.Options {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shared.Load()
	o := proxy.Options{
		Layers:       c.layers,
		Hold:         int(s.settings.Limits.Hold),
		InFlight:     s.settings.Limits.InFlight,
		ForwardNoise: s.settings.StdoutNoise == "forward",
		DryRun:       s.settings.DryRun,
		Control:      c.Control,
		IDPrefix:     c.IDPrefix,
		Log:          c.Log,
	}
	if c.audit != nil {
		o.Aside = func(f proxy.Aside) { c.audit.Aside(f.Message, f.Why, f.Code, c.clientContext(f.Message)) }
	}
	return o
}

// Context returns what is known of the session.
func (c *Conn) Context() *sessionstate.Context { return c.capture.Current() }

// Settings returns the settings in force.
func (c *Conn) Settings() *config.Settings { return c.shared.Load().settings }

// Close ends what the layers keep of the connection.
func (c *Conn) Close() {
	s := c.shared.Load()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.spans.Close()
	if c.briefing != nil {
		c.briefing.Close()
	}
	if c.audit != nil {
		c.audit.Close()
	}
}

// Single compiles settings for a process with one connection.
func Single(o Options, settings *config.Settings, conn ConnOptions) (*Conn, error) {
	s, err := Compile(o, settings)
	if err != nil {
		return nil, err
	}
	return s.Connect(conn), nil
}

// Shared returns what is in force on the connection.
func (c *Conn) Shared() *Shared { return c.shared.Load() }
