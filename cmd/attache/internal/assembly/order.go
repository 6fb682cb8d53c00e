package assembly

import (
	"log/slog"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/clientprocess"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/middleware/trace"
)

// A Place is where a layer stands in the chain.
type Place struct {
	// Name is that of the layer.
	Name string
	// Does says in a line what the layer does.
	Does string

	rehearsed bool // a dry run lets the layer decide and not act
	layer     func(*builder) (layer middleware.Layer, ok bool)
}

// Order returns the places of all layers, from the client to the server. It is the
// one list of them.
//
// The audit is outside all layers but trace, so that it sees every decision. Its gate
// is inside all but briefing, so that a refusal of the gate carries no briefing. A dry
// run keeps the layers behind capture from acting: those before it only look, and
// capture cuts out credentials, which no server may see.
func Order() []Place {
	return []Place{
		{"trace", "follows the call: trace context in _meta, spans and metrics", false, (*builder).trace},
		{"audit", "writes down what was decided", false, (*builder).audit},
		{"status", "counts what the layers do, for attache status", false, (*builder).status},
		{"announce", "tells the client of changed lists", false, (*builder).announce},
		{"capture", "reads who and where out of the traffic; cuts credentials out", false, (*builder).capture},
		{"rewrite", "hides, renames, describes tools; sets arguments by rule", true, (*builder).rewrite},
		{"access-list", "leaves out of tools/list what may not be called", true, (*builder).accessList},
		{"arguments", "fills, pins and forbids arguments from the session; keeps the schema in step", true, (*builder).arguments},
		{"access", "refuses calls that are not allowed; rates", true, (*builder).accessCalls},
		{audit.GateName, "lets a call go on when its record is written", true, (*builder).auditGate},
		{"briefing", "puts policies and objectives in front of the first response", true, (*builder).briefing},
		{"teams", "carries messages of other agents in front of tool results", true, (*builder).teams},
		{"catalog", "remembers what tools/list says, for the layers in front of it", false, (*builder).catalog},
	}
}

// chain makes the layers that s has for the connection.
func (c *Conn) chain(s *Shared) (layers []middleware.Layer) {
	b := &builder{conn: c, shared: s, log: c.Log}
	if s.settings.DryRun {
		b.log = dryrun.Mark(c.Log)
	}
	var rehearsed []middleware.Layer
	for _, place := range Order() {
		layer, ok := place.layer(b)
		switch {
		case !ok:
		case place.rehearsed && s.settings.DryRun:
			rehearsed = append(rehearsed, layer)
		default:
			if rehearsed != nil {
				layers = append(layers, s.dryRun.Connect(dryrun.ConnOptions{Layers: rehearsed}).Layer())
				rehearsed = nil
			}
			layers = append(layers, layer)
		}
	}
	c.briefing = b.briefingConn
	return layers
}

// A builder makes the layers of one connection.
type builder struct {
	conn         *Conn
	shared       *Shared
	log          *slog.Logger // of the layers that a dry run keeps from acting
	access       *access.Conn // made when it is first wanted
	briefingConn *briefing.Conn
}

// trace is there without configuration too, since a client that traces has its trace
// id in log and audit.
func (b *builder) trace() (middleware.Layer, bool) {
	o := trace.ConnOptions{Open: &b.conn.spans, Replayed: b.conn.Replayed}
	if client := b.conn.Client; client != nil {
		o.Carrier = client.Span
	}
	return b.shared.trace.Connect(o).Layer(), true
}

// audit enforces where the audit is required, also where no records are written: an
// explanation judges frames as a session would.
func (b *builder) audit() (middleware.Layer, bool) {
	if b.conn.audit != nil {
		return b.conn.audit.Layer(), true
	}
	a := b.shared.settings.Audit
	return middleware.Layer{Name: "audit", Enforces: true}, !b.shared.Audit && a.Required && a.File != ""
}

func (b *builder) status() (middleware.Layer, bool) {
	if b.conn.Status == nil {
		return middleware.Layer{}, false
	}
	return b.conn.Status.Layer(), true
}

func (b *builder) announce() (middleware.Layer, bool) {
	return b.conn.announce.Layer(), b.conn.Control != nil
}

func (b *builder) capture() (middleware.Layer, bool) { return b.conn.capture.Layer(), true }

func (b *builder) rewrite() (middleware.Layer, bool) {
	if b.shared.rewrite == nil {
		return middleware.Layer{}, false
	}
	return b.shared.rewrite.Connect(rewrite.ConnOptions{Catalog: &b.conn.catalog, Log: b.log}).Layer(), true
}

// accessConn returns what refuses calls, nil if nothing may be refused.
func (b *builder) accessConn() *access.Conn {
	if b.access == nil && b.shared.access != nil {
		b.access = b.shared.access.Connect(access.ConnOptions{
			Catalog: &b.conn.catalog,
			Log:     b.log,
		})
	}
	return b.access
}

func (b *builder) accessList() (middleware.Layer, bool) {
	a := b.accessConn()
	if a == nil || !a.Lists() {
		return middleware.Layer{}, false
	}
	return a.ListLayer(), true
}

func (b *builder) accessCalls() (middleware.Layer, bool) {
	a := b.accessConn()
	if a == nil {
		return middleware.Layer{}, false
	}
	return a.Layer(), true
}

// arguments is left out where the configuration has an empty list of rules.
func (b *builder) arguments() (middleware.Layer, bool) {
	if b.shared.arguments == nil {
		return middleware.Layer{}, false
	}
	return b.shared.arguments.Connect(arguments.ConnOptions{
		Catalog:   &b.conn.catalog,
		Workspace: b.conn.capture,
		Log:       b.log,
	}).Layer(), true
}

// auditGate is left out of a dry run, which refuses nothing.
func (b *builder) auditGate() (middleware.Layer, bool) {
	a := b.conn.audit
	if a == nil || !a.Required() || b.shared.settings.DryRun {
		return middleware.Layer{}, false
	}
	return a.Gate(), true
}

func (b *builder) briefing() (middleware.Layer, bool) {
	if b.shared.briefing == nil {
		return middleware.Layer{}, false
	}
	o := briefing.ConnOptions{
		Catalog:       &b.conn.catalog,
		Credential:    b.conn.policyKey(b.shared),
		ClientProcess: clientprocess.Name,
		Log:           b.log,
	}
	if !b.shared.settings.DryRun { // in which the client is not shown what the layer makes of a list
		o.Memory, o.Results = &b.conn.briefed, &b.conn.results
	}
	b.briefingConn = b.shared.briefing.Connect(o)
	return b.briefingConn.Layer(), true
}

func (b *builder) catalog() (middleware.Layer, bool) { return b.conn.catalog.Layer(), true }

// Names returns the names of the connection's layers, in their order.
func (c *Conn) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, l := range c.layers {
		names = append(names, l.Name)
	}
	return slices.Clip(names)
}
