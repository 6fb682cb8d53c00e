package assembly

import (
	"cmp"
	"log/slog"
	"os"
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
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/sessionstate"
)

// ConnOptions are the options of one connection.
type ConnOptions struct {
	// Control is the control of the relay, through which the client is notified of changed
	// lists and rules are replaced. Without it neither happens.
	Control *proxy.Control
	// IDPrefix begins the ids of attache's requests if the session is recorded or replayed;
	// if it is empty, the relay chooses one. A replay has to send the same bytes as the recording.
	IDPrefix string
	// Replayed returns the spans of a replayed session; see trace.Options.
	Replayed func(id []byte) string
	// Status, if not nil, counts what the layers do.
	Status *status.Recorder
	// Client is a front's client, nil for the client that started the process.
	Client *Client
	// Log is the log of this connection; nil for that of the process.
	Log *slog.Logger
}

// A Conn is one client connection: its layers and their state. Close it when the relay has
// returned. Connect sets the fields that mu does not guard. After that the layers use these fields and lock
// them themselves: layers of two configurations may use a field at once while a reload takes effect.
type Conn struct {
	ConnOptions
	capture  *capture.Conn
	announce announce.Announce
	catalog  middleware.Catalog
	briefed  briefing.Memory
	spans    trace.OpenSpans
	results  toolresult.Memory
	listed   rewrite.ListedURIs
	audit    *audit.Conn            // nil without an audit
	shared   atomic.Pointer[Shared] // the latest that use has applied; stored with mu held

	// mu guards the fields below. It is held while the relay gets new layers, so configurations are
	// applied one after the other. Layers must not lock it: the relay runs them while Replace waits.
	mu       sync.Mutex
	layers   []middleware.Layer
	briefing *briefing.Conn // the one in layers, nil for none
	closed   bool
}

// Connect makes the state of a client connection under the current configuration.
func (s *Shared) Connect(o ConnOptions) *Conn {
	// mu is held until the connection is in conns. Otherwise a Reload in between would not reach it.
	s.mu.Lock()
	defer s.mu.Unlock()
	s = s.current
	c := &Conn{ConnOptions: o}
	c.Log = cmp.Or(c.Log, s.Log)
	// Each connection has a table of sessions of its own: clients choose their conversation keys.
	conn := capture.ConnOptions{
		Base:     s.baseContext(o.Client),
		Sessions: sessionstate.NewSessions(sessionstate.SessionsOptions{TTL: s.settings.Session.TTL}),
		Changed:  func() { c.notify(c.shared.Load().lists) },
		// It runs with the first message, when c.audit is set.
		Waited: func(call *middleware.Call) {
			if c.audit != nil {
				c.audit.Identified(call)
			}
		},
		Log: c.Log,
	}
	if o.Client != nil {
		conn.Namespace, conn.Session = o.Client.Namespace, o.Client.Session
		conn.Identify, conn.Known = s.process.identifyClient(o.Client), s.process.knownClient(o.Client)
	} else {
		// The client started this process in its own directory and with its own variables.
		settings := s.settings
		conn.Directory, _ = os.Getwd() // "" if it was removed
		conn.HostSession = func(client string) sessionstate.Fact { return hostSession(s.Process, settings, client) }
	}
	if o.IDPrefix != "" { // a recording has it, so a replay has the same key
		conn.Name = "connection-" + strings.Trim(strings.TrimPrefix(o.IDPrefix, ownIDs), "-")
	}
	c.capture = s.capture.Connect(conn)
	// The Conn of the audit stays the same, so its functions look up the scrubbers of the current configuration.
	if s.audit != nil {
		c.audit = s.audit.Connect(audit.ConnOptions{
			Redact: func(raw []byte) []byte { return c.shared.Load().scrubAudit.Line(raw) },
			Scrub:  func(record []byte) []byte { return c.shared.Load().scrubKnown.Line(record) },
		})
	}
	c.use(s) // does not wait, because the relay has not begun
	s.conns[c] = struct{}{}
	return c
}

// use applies the configuration s to the connection, unless a newer one already applies. Connect calls it, and then a
// goroutine of each Reload. It stores s before the relay gets the layers of s. When these layers ask the Conn for a
// value, such as a scrubber, the value is of their configuration or of a newer one.
func (c *Conn) use(s *Shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// A Reload that has waited for applyTime leaves its goroutine behind, and the next one may overtake it.
	if now := c.shared.Load(); c.closed || now != nil && now.number > s.number {
		return
	}
	c.shared.Store(s)
	c.layers = c.chain(s)
	// Replace may wait for a peer that does not read, but not once the session has ended, so Close can lock mu.
	if c.Control != nil {
		c.Control.Replace(proxy.Rules{Layers: c.layers, DryRun: s.settings.DryRun})
	}
}

// notify notifies the client of changed lists. announce.Changed leaves out the lists that the client need not
// know of. notify does not block, because Notify queues the notifications.
func (c *Conn) notify(lists []announce.List) {
	if c.Control == nil {
		return
	}
	for _, m := range c.announce.Changed(lists...) {
		c.Control.Notify(m)
	}
}

// Relay returns the options of a relay with the connection's layers. If a reload comes between Relay and
// proxy.Run, Control keeps its rules for the relay: see proxy.Control.
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
	// Without Aside, the frames that no layer sees would pass without a record.
	if c.audit != nil {
		o.Aside = func(f proxy.Aside) { c.audit.Aside(f.Message, f.Why, f.Code, c.clientContext(f.Message)) }
	}
	return o
}

// Context returns what is known about the session.
func (c *Conn) Context() *sessionstate.Context { return c.capture.Current() }

// Settings returns the current settings.
func (c *Conn) Settings() *config.Settings { return c.shared.Load().settings }

// Close closes the state that layers keep for the connection. It is called after the relay has returned, so no layer
// runs any more. It does not lock process.mu while it holds c.mu: see process.
func (c *Conn) Close() {
	s := c.shared.Load()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true // a Reload may have listed the connection before it was deleted
	c.spans.Close()
	c.briefed.Close() // without policies, or in a dry run, c.briefing does not
	if c.briefing != nil {
		c.briefing.Close()
	}
	if c.audit != nil {
		c.audit.Close()
	}
}

// Shared returns the Shared that the connection uses.
func (c *Conn) Shared() *Shared { return c.shared.Load() }

// ownIDs begins the ids of attache's requests if the recording has no prefix.
const ownIDs = "attache-"
