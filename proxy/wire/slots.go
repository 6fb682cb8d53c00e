package wire

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/wire/internal/jsonstring"
)

// A slot names a member whose position a scan records. The members of the envelope come first,
// then those of params: slotAmong searches one of the two ranges.
type slot uint8

const (
	slotNone slot = iota
	slotVersion
	slotID
	slotMethod
	slotParams
	slotResult
	slotError
	slotName
	slotArguments
	slotMeta
	slots
)

// A span has the offsets of a member's value in the frame. If its end is not after its start, the
// member was not found, or the scan stopped inside its value.
type span struct{ start, end int }

var slotNames = [slots]string{"", "jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "_meta"}

// slotAmong returns the slot from first to last that has that name, slotNone if there is
// none. It is a switch because it is called for every member of an envelope.
func slotAmong(name []byte, first, last slot) slot {
	found := slotNone
	switch string(name) {
	case "jsonrpc":
		found = slotVersion
	case "id":
		found = slotID
	case "method":
		found = slotMethod
	case "params":
		found = slotParams
	case "result":
		found = slotResult
	case "error":
		found = slotError
	case "name":
		found = slotName
	case "arguments":
		found = slotArguments
	case "_meta":
		found = slotMeta
	}
	if found < first || found > last {
		return slotNone
	}
	return found
}

// methods are the methods that layers ask for, and other frequent ones. The most frequent come first,
// because known compares with one after the other. A method that a layer decides on must be in the list,
// because flagMethod looks only for twins of these. They must be in lower case, also for flagMethod.
var methods = [...]string{
	"tools/call", "tools/list", "notifications/progress", "notifications/message", "ping", "initialize", "server/discover",
	"notifications/initialized", "notifications/cancelled", "notifications/tools/list_changed", "notifications/roots/list_changed",
	"resources/read", "resources/list", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
	"prompts/get", "prompts/list", "completion/complete", "subscriptions/listen", "tasks/get", "tasks/result",
	"skills/list", "skills/get", "resources/directory/read",
}

// known returns the element of methods that v is, "" if it is none. Layers ask for the method many
// times, so it is looked up once.
func known(v Value) string {
	if !v.IsString() {
		return ""
	}
	for _, name := range methods {
		if string(v.Raw[1:len(v.Raw)-1]) == name {
			return name
		}
	}
	return ""
}

const (
	captureValue = 4096 // longest id or method that is kept, in bytes
	captureName  = 64   // longest name that is kept; "jsonrpc" in \u escapes has 44 bytes
)

// topSlotQuoted returns the slot of a top-level member with that quoted name. Nearly all names have no
// escapes, so they are compared as they are first. A name longer than captureName stands for none of
// them, however it is escaped.
func topSlotQuoted(quoted []byte) slot {
	in := quoted[1 : len(quoted)-1]
	found := slotAmong(in, slotVersion, slotError)
	if found != slotNone || len(quoted) > captureName || bytes.IndexByte(in, '\\') < 0 {
		return found
	}
	return slotAmong(jsonstring.AppendUnescaped(make([]byte, 0, captureName), in), slotVersion, slotError)
}
