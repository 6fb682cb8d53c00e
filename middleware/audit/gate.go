package audit

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// GateName is the name of the layer that Gate returns.
const GateName = "audit-gate"

// Gate returns the second layer of a required audit. It must run inside all layers that
// decide about calls or edit them. It records a call before it is sent, and refuses it if
// the record cannot be written.
//
// While a call waits for its record, which takes as long as a write, the frames behind it
// wait too. The gate waits until the operating system has the record, not until the disk
// has it.
func (c *Conn) Gate() middleware.Layer {
	return middleware.Layer{Name: GateName, Wrap: c.gate, Enforces: true}
}

func (c *Conn) gate(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From != wire.Client || !isRecorded(m) {
			return next(ctx, m)
		}
		call := middleware.CallFrom(ctx)
		e, _ := call.Value(entryKey{}).(*entry)
		if e == nil {
			return next(ctx, m)
		}
		intent, ok := e.intent(call, m)
		if !ok { // the call was cancelled while an outer layer held it, or the session has ended
			return refuse(ctx, m)
		}
		receipt := c.o.Log.Commit(intent)
		until := time.Now().Add(commitWait)
		call.Suspend(m, receipt.Done(), commitWait, func(ctx context.Context, m *wire.Message) error {
			if isWritten(receipt, until) {
				return next(ctx, m)
			}
			return refuse(ctx, m)
		})
		return nil
	}
}

// isWritten reports whether a record is in the file. For a frame that cannot be suspended,
// such as a notification or a member of a batch, it waits until then.
func isWritten(r *chain.Receipt, until time.Time) bool {
	select {
	case <-r.Done():
	case <-time.After(time.Until(until)):
	}
	select { // in case both channels were ready
	case <-r.Done():
		return r.Err() == nil
	default:
		return false
	}
}

// textUnrecorded is for the model, which cannot correct the cause.
const textUnrecorded = "This call was not made: every call here has to be recorded, and that is not possible at the moment. Ask the user to look at attache's log."

// refuse answers a call that must not be made.
func refuse(ctx context.Context, m *wire.Message) error {
	call := middleware.CallFrom(ctx)
	call.Note(middleware.Note{Layer: "audit", Rule: "audit.required", Act: middleware.Refused, Why: "it could not be recorded"})
	if m.Kind() != wire.Request {
		return nil
	}
	if !m.MethodIs("tools/call") {
		return call.Answer(ctx, wire.ErrorReply(m.ID(), wire.CodeInternalError, textUnrecorded))
	}
	view := sessionstate.ContextOf(call)
	return call.Answer(ctx, wire.RefusalReply(m, textUnrecorded, view != nil && view.Modern))
}
