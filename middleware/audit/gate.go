package audit

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy/wire"
)

// entryKey is the key under which a call carries its entry to the gate.
type entryKey struct{}

// GateName is the name of the layer that Gate returns.
const GateName = "audit-gate"

// Gate returns the second layer of an audit that is required. It stands inside all
// layers that decide about calls or edit them: it records what is about to be sent, and lets it go
// on when that is in the file. A call that cannot be recorded is refused.
//
// While a call waits for its record, which takes as long as a write does, those
// behind it wait too. The record is in the file when the operating system has
// taken it; that it is on the disk is not waited for.
func (a *Audit) Gate() middleware.Layer {
	return middleware.Layer{Name: GateName, Wrap: a.gate, Enforces: true}
}

func (a *Audit) gate(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From != wire.Client || !audited(m) {
			return next(ctx, m)
		}
		call := middleware.CallFrom(ctx)
		e, _ := call.Value(entryKey{}).(*entry)
		if e == nil {
			return next(ctx, m)
		}
		intent, ok := a.intent(e, call, m)
		if !ok { // it was cancelled while it waited further out, or the session is over
			return a.refuse(ctx, m)
		}
		receipt := a.o.Log.Commit(intent)
		until := time.Now().Add(a.o.Wait)
		call.Suspend(m, receipt.Done(), a.o.Wait, func(ctx context.Context, m *wire.Message) error {
			if recorded(receipt, until) {
				return next(ctx, m)
			}
			return a.refuse(ctx, m)
		})
		return nil
	}
}

// recorded reports whether a record is in the file. What could not be held back, a
// notification or the member of a batch, waits for it here.
func recorded(r *chain.Receipt, until time.Time) bool {
	select {
	case <-r.Done():
		return r.Err() == nil
	default:
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-r.Done():
		return r.Err() == nil
	case <-t.C:
		return false
	}
}

// textUnrecorded is for the model: it can do nothing about it.
const textUnrecorded = "This call was not made: every call here has to be recorded, and that is not possible at the moment. Ask the user to look at attache's log."

// refuse answers a call that must not be made.
func (a *Audit) refuse(ctx context.Context, m *wire.Message) error {
	call := middleware.CallFrom(ctx)
	call.Note(middleware.Note{Layer: "audit", Rule: "audit.required", Act: middleware.Refused, Why: "it could not be recorded"})
	if m.Kind() != wire.Request {
		return nil
	}
	if !m.MethodIs("tools/call") {
		return call.Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInternalError, textUnrecorded))
	}
	view := viewOf(call)
	return call.Answer(ctx, wire.RefusalReply(m, textUnrecorded, view != nil && view.Modern))
}
