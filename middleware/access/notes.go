package access

import (
	"strconv"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
)

const layerName = "access"

func (c *Conn) noteDecision(call *middleware.Call, d *decision, steps []step) {
	for _, s := range steps {
		if s.skipped() {
			call.Note(middleware.Note{Layer: layerName, Rule: c.o.Rules[s.rule].Name, Act: middleware.Skipped, Why: s.why()})
		}
	}
	act := middleware.Refused
	if d.allowed {
		act = middleware.Allowed
	}
	call.Note(middleware.Note{Layer: layerName, Rule: d.by, Act: act, Why: d.why()})
}

// noteRates adds a note for each rate that did not refuse the call.
func (c *Conn) noteRates(call *middleware.Call, d *decision, tool string) {
	for i := range c.o.Rates {
		note := middleware.Note{Layer: layerName, Rule: c.o.Rates[i].Name, Act: middleware.Skipped}
		matches, _ := glob.Match(c.o.Rates[i].Tools, tool) // an error has already refused the call
		switch {
		case i == d.rate:
			continue
		case !matches:
			note.Why = string(OtherTools)
		case d.allowed:
			note.Act, note.Why = middleware.Allowed, "the rate is not reached"
		default:
			note.Why = "a call that is refused is not counted"
		}
		call.Note(note)
	}
}

// noteHidden adds a note for the tool at index i of a list, which is being removed.
func (c *Conn) noteHidden(call *middleware.Call, i int, entry wire.Value, d *decision) {
	if !call.Noted() {
		return
	}
	call.Note(middleware.Note{
		Layer: layerName, Rule: d.by, Act: middleware.Edited, Why: "the tool is hidden: " + d.why(),
		Path: []string{"result", "tools", strconv.Itoa(i)}, Before: entry.Raw,
	})
}
