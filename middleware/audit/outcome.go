package audit

import (
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// An outcome describes how a call ended.
type outcome struct {
	result string
	code   string // the number of an error
	bytes  int    // the size of the reply; 0 if there was none or it was too large to hold
}

// The results.
const (
	resultOK        = "ok"
	resultToolError = "tool_error" // a result with isError
	resultError     = "error"      // a JSON-RPC error
	resultCancelled = "cancelled"
	resultInput     = "input_required"
	resultTask      = "task"
	resultTooLarge  = "too_large" // the reply passed without being read
	resultUnread    = "unreadable"
	resultOther     = "other"
	resultNone      = "none" // there was no reply
)

// outcomeOf returns the outcome of a call from the reply to the client.
func outcomeOf(reply *wire.Message) outcome {
	o := outcome{bytes: len(reply.Line())}
	switch {
	case reply.TooLarge():
		o.result, o.bytes = resultTooLarge, 0
	case !reply.Plain():
		o.result = resultUnread
	case reply.Kind() == wire.Error:
		o.result, o.code = resultError, number(reply.ErrorObject().Get("code"))
	default:
		o.result = resultOf(reply.Result())
	}
	return o
}

// resultOf returns the kind of a result. It reads the members once.
func resultOf(result wire.Value) string {
	kind, input, task, failed := wire.Value{}, false, false, false
	for m := range result.Members() {
		switch m.Key.View() {
		case "resultType":
			kind = m.Value
		case "inputRequests":
			input = true
		case "task":
			task = true
		case "isError":
			failed = string(m.Value.Raw) == "true"
		}
	}
	switch {
	case input, kind.Equals("input_required"):
		return resultInput
	case task, kind.Equals("task"):
		return resultTask
	case kind.Exists() && !kind.Equals("complete"):
		return resultOther
	case failed:
		return resultToolError
	}
	return resultOK
}

// number returns the text of an integer, or "".
func number(v wire.Value) string {
	digits := strings.TrimPrefix(string(v.Raw), "-")
	if len(digits) == 0 || len(digits) > 10 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return string(v.Raw)
}
