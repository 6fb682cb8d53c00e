package access

import (
	"strconv"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	layerName     = "access"
	listLayerName = "access-list"
)

// noteDecision makes a note of each rule that was passed over, if steps has them,
// and one of the decision.
func (a *Access) noteDecision(call *middleware.Call, d *Decision, steps []Step) {
	for _, s := range steps {
		if s.passedOver() {
			call.Note(middleware.Note{Layer: layerName, Rule: a.names[s.Rule], Act: middleware.Skipped, Why: why(s.Reason, s.Missing, s.Err)})
		}
	}
	act := middleware.Refused
	if d.Allowed {
		act = middleware.Allowed
	}
	call.Note(middleware.Note{Layer: layerName, Rule: a.by(d), Act: act, Why: d.Why()})
}

// by is [Decision.By].
func (a *Access) by(d *Decision) string {
	if d.Rate < 0 && d.Rule >= 0 {
		return a.names[d.Rule]
	}
	return d.By()
}

// noteRates makes a note of each rate that did not refuse the call, and why not.
func (a *Access) noteRates(call *middleware.Call, d *Decision, tool string) {
	for i := range a.o.Rates {
		note := middleware.Note{Layer: layerName, Rule: "access.rates[" + strconv.Itoa(i) + "]", Act: middleware.Skipped}
		named, _ := glob.Match(a.o.Rates[i].Tools, tool) // an error has made the decision
		switch {
		case i == d.Rate:
			continue
		case !named:
			note.Why = string(OtherTools)
		case d.Allowed:
			note.Act, note.Why = middleware.Allowed, "the rate is not reached"
		default:
			note.Why = "a call that is refused is not counted"
		}
		call.Note(note)
	}
}

// passedOver reports whether the rule left the decision to the next.
func (s *Step) passedOver() bool {
	return s.Reason == OtherTools || s.Reason == ConditionFalse || s.Reason == NeedsArguments
}

// noteHidden makes a note of the tool at index i of a list, which is left out.
func (a *Access) noteHidden(call *middleware.Call, i int, entry wire.Value, d *Decision) {
	if !call.Noted() {
		return
	}
	call.Note(middleware.Note{
		Layer: layerName, Rule: a.by(d), Act: middleware.Edited, Why: "the tool is hidden: " + d.Why(),
		Path: []string{"result", "tools", strconv.Itoa(i)}, Before: entry.Raw,
	})
}
