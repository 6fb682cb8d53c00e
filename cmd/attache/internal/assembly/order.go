package assembly

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/clientprocess"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/middleware/trace"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A Place is the place of a layer in the chain.
type Place struct {
	// Name is the name of the layer.
	Name string
	// Does describes in one line what the layer does.
	Does string

	// dryRun says that in a dry run the layer decides and does not act: see Order.
	dryRun bool
	layer  func(*builder) middleware.Layer // without a name if there is none
}

// Order returns the places of all layers, from the client to the server. It is the
// only list of layers.
//
// The order decides what a layer sees. A request passes the layers as listed, its reply in reverse.
// Rules are written with the server's names and values, so rewrite, which changes them for the client, is
// outside the other layers with rules. docs/design.md has a reason for each place.
//
// The audit is outside all layers but trace, so that it sees every decision. Its gate
// is outside briefing, so that a refusal by the gate carries no briefing. In a dry run
// the layers after capture do not act. Those before it only observe, and capture must
// remove credentials, which no server may see.
func Order() []Place {
	return []Place{
		{"trace", "records spans and metrics; passes on the trace context in _meta", false, (*builder).trace},
		{"audit", "records every decision", false, (*builder).audit},
		{"status", "counts what the layers do, for attache status", false, (*builder).status},
		{"announce", "tells the client of changed lists", false, (*builder).announce},
		{"capture", "reads the session's facts from the traffic; removes credentials", false, (*builder).capture},
		{"rewrite", "hides, renames, describes tools; sets arguments by rule", true, (*builder).rewrite},
		{"access-list", "removes tools that may not be called from tools/list", true, (*builder).accessList},
		{"arguments", "fills, pins and forbids arguments; edits the schemas to agree", true, (*builder).arguments},
		{"access", "refuses calls that are not allowed or exceed a rate", true, (*builder).accessCalls},
		{audit.GateName, "sends a call on when its record is written", true, (*builder).auditGate},
		{"briefing", "puts policies and objectives in front of the first response", true, (*builder).briefing},
		{"teams", "puts messages of other agents in front of tool results", true, (*builder).teams},
		{"catalog", "keeps the server's tool list for the layers above", false, (*builder).catalog},
	}
}

// chain makes the layers of s for the connection, when it begins and at each reload. The layers are new; they get the
// state that survives a reload from c. In a dry run, all layers that must not act are in one layer, which runs them
// on a copy of each message. The loop adds that layer before the last place, catalog, which always acts. The caller
// holds c.mu.
func (c *Conn) chain(s *Shared) (layers []middleware.Layer) {
	b := &builder{conn: c, shared: s, log: c.Log}
	if s.settings.DryRun {
		b.log = dryrun.Mark(c.Log)
	}
	if s.access != nil {
		b.access = s.access.Connect(access.ConnOptions{Catalog: &c.catalog, Log: b.log})
	}
	var dryLayers []middleware.Layer
	for _, place := range Order() {
		layer := place.layer(b)
		switch {
		case layer.Name == "":
		case place.dryRun && s.settings.DryRun:
			dryLayers = append(dryLayers, layer)
		default:
			if dryLayers != nil {
				layers = append(layers, dryrun.New(dryrun.Options{Layers: dryLayers, Show: s.showMember, Log: c.Log}))
				dryLayers = nil
			}
			layers = append(layers, layer)
		}
	}
	c.briefing = b.briefingConn
	return layers
}

// A builder makes the layers of one connection for one configuration. Each of its methods makes the layer of one place,
// or none if the configuration does not need it: a message pays for each layer that it passes.
type builder struct {
	conn         *Conn
	shared       *Shared
	log          *slog.Logger // for the layers that do not act in a dry run
	access       *access.Conn // two layers use it; nil if all calls are allowed
	briefingConn *briefing.Conn
}

// trace returns the layer even if nothing is configured, because it also adds a client's trace id
// to the log and the audit.
func (b *builder) trace() middleware.Layer {
	s := b.shared.settings
	o := trace.Options{
		Propagate: s.Trace.Propagate, DryRun: s.DryRun, Telemetry: b.shared.Telemetry, Log: b.conn.Log,
		Open: &b.conn.spans, Replayed: b.conn.Replayed,
		Hide: func(text string) string { return string(b.shared.scrubber().Line([]byte(text))) },
	}
	if client := b.conn.Client; client != nil {
		o.Carrier = client.Span
	}
	return trace.New(o).Layer()
}

// audit returns a layer that enforces if the audit is required but no records are written, so that
// an explanation treats frames as a session does.
func (b *builder) audit() middleware.Layer {
	if b.conn.audit != nil {
		return b.conn.audit.Layer()
	}
	a := b.shared.settings.Audit
	if b.shared.Audit || !a.Required || a.File == "" {
		return middleware.Layer{}
	}
	return middleware.Layer{Name: "audit", Enforces: true}
}

// status returns no layer without a Recorder: attache serve counts its sessions elsewhere.
func (b *builder) status() middleware.Layer {
	if b.conn.Status == nil {
		return middleware.Layer{}
	}
	return b.conn.Status.Layer()
}

// announce returns no layer without a Control: nothing could be sent to the client.
func (b *builder) announce() middleware.Layer {
	if b.conn.Control == nil {
		return middleware.Layer{}
	}
	return b.conn.announce.Layer()
}

// capture returns a layer that asks the client for its roots before a call needs them, if a rule reads the workspace.
// Without such a rule the layer does not ask, because asking costs the first call a round trip.
func (b *builder) capture() middleware.Layer {
	if readsWorkspace(b.shared.settings) {
		return b.conn.capture.AskingLayer()
	}
	return b.conn.capture.Layer()
}

// readsWorkspace reports whether a rule needs the path of the workspace to judge or edit a call. It
// leaves out arguments whose value is just that path: their layer asks only if a tool has the argument.
func readsWorkspace(s *config.Settings) bool {
	var read []*expression.Program
	for _, r := range s.Access.Rules {
		read = append(read, r.When)
	}
	for _, r := range s.Rewrite {
		read = append(read, r.When)
		for _, set := range r.Set {
			read = append(read, set.Value)
		}
	}
	for _, r := range s.Arguments {
		if read = append(read, r.When); r.Value != nil && r.Value.Path() == "" {
			read = append(read, r.Value)
		}
	}
	return slices.ContainsFunc(read, (*expression.Program).UsesWorkspace)
}

func (b *builder) rewrite() middleware.Layer {
	if b.shared.rewrite == nil {
		return middleware.Layer{}
	}
	return b.shared.rewrite.Connect(rewrite.ConnOptions{Catalog: &b.conn.catalog, Listed: &b.conn.listed, Log: b.log}).Layer()
}

// accessList and accessCalls are two layers of one access.Conn, because arguments must be between them: arguments
// must see every tool of a list, and access must judge a call as it will be sent.
func (b *builder) accessList() middleware.Layer {
	if b.access == nil || !b.access.Lists() {
		return middleware.Layer{}
	}
	return b.access.ListLayer()
}

func (b *builder) accessCalls() middleware.Layer {
	if b.access == nil {
		return middleware.Layer{}
	}
	return b.access.Layer()
}

// arguments returns no layer if the configuration has an empty list of rules. The layer asks capture for the workspace
// only if a tool has an argument that a rule fills with it: see readsWorkspace.
func (b *builder) arguments() middleware.Layer {
	if b.shared.arguments == nil {
		return middleware.Layer{}
	}
	return b.shared.arguments.Connect(arguments.ConnOptions{
		Catalog:   &b.conn.catalog,
		Workspace: b.conn.capture,
		Log:       b.log,
	}).Layer()
}

// auditGate returns no layer in a dry run, which refuses nothing. It is inside the layers that decide and edit, so the
// record that it waits for has their decisions and edits.
func (b *builder) auditGate() middleware.Layer {
	a := b.conn.audit
	if a == nil || !a.Required() || b.shared.settings.DryRun {
		return middleware.Layer{}
	}
	return a.Gate()
}

func (b *builder) briefing() middleware.Layer {
	if b.shared.briefing == nil {
		return middleware.Layer{}
	}
	// This name is the same in all processes of a server, and differs between servers. The arguments contain the
	// server's command, except in attache serve, whose servers differ in their names.
	server := append(slices.Clone(b.shared.Process.Args), b.shared.settings.Server.Name)
	o := briefing.ConnOptions{
		Catalog:    &b.conn.catalog,
		Credential: b.conn.policyKey(b.shared),
		Server:     strings.Join(server, "\x00"),
		Log:        b.log,
	}
	if b.conn.Client == nil { // the clients of attache serve have not started it
		o.ClientProcess = clientprocess.Name
		o.Directory, _ = os.Getwd() // "" if it was removed
	}
	if !b.shared.settings.DryRun { // in a dry run the client does not see the layer's version of a list
		o.Memory, o.Results = &b.conn.briefed, &b.conn.results
	}
	b.briefingConn = b.shared.briefing.Connect(o)
	return b.briefingConn.Layer()
}

// catalog is innermost, so it reads the lists before other layers edit them.
func (b *builder) catalog() middleware.Layer { return b.conn.catalog.Layer() }

// Names returns the names of the connection's layers, in their order. In a dry run, the layers that must not act are
// one layer.
func (c *Conn) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, l := range c.layers {
		names = append(names, l.Name)
	}
	return names
}
