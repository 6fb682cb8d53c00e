package wire

var slotNames = [slots]string{"", "jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "_meta"}

// setSlot sets where the place of c's member with that name is recorded.
func (s *Scanner) setSlot(c *container, name []byte) {
	c.slot = s.named(c, name)
	if c.slot == slotID {
		s.m.ids++
	}
}

// named returns the slot of the member called name. It flags a name that a
// lenient reader takes for one that matters in c.
func (s *Scanner) named(c *container, name []byte) slot {
	switch c.role {
	case roleTop:
		if found := topSlot(name); found != slotNone {
			return found
		}
		s.flagTwin(name, slotNames[slotVersion:slotError+1])
	case roleParams:
		if found := paramsSlot(name); found != slotNone {
			return found
		}
		s.flagTwin(name, slotNames[slotName:slotMeta+1])
	case roleArguments:
		if int(c.level) < len(s.ArgumentNames) {
			s.flagTwin(name, s.ArgumentNames[c.level])
		}
	}
	return slotNone
}

// topSlot returns the slot of a top-level member.
func topSlot(name []byte) slot {
	switch string(name) {
	case "jsonrpc":
		return slotVersion
	case "id":
		return slotID
	case "method":
		return slotMethod
	case "params":
		return slotParams
	case "result":
		return slotResult
	case "error":
		return slotError
	}
	return slotNone
}

// paramsSlot returns the slot of a member of params.
func paramsSlot(name []byte) slot {
	switch string(name) {
	case "name":
		return slotName
	case "arguments":
		return slotArguments
	case "_meta":
		return slotMeta
	}
	return slotNone
}

// flagTwin flags name if it is not one of known, but a lenient reader takes it
// for one.
func (s *Scanner) flagTwin(name []byte, known []string) {
	for _, k := range known {
		if string(name) != k && Alike(name, k) {
			s.flag(TwinName)
		}
	}
}

// judgedMethods are the methods that layers decide on. A lenient server may run
// one of them under a name that is only Alike.
var judgedMethods = []string{
	"tools/call", "tools/list", "prompts/get", "prompts/list", "resources/read", "resources/list",
	"resources/templates/list", "resources/subscribe", "resources/unsubscribe", "completion/complete",
	"subscriptions/listen", "tasks/get", "tasks/result", "initialize", "server/discover",
	"notifications/initialized", "notifications/cancelled", "notifications/roots/list_changed",
}

// flagMethod flags a method that is Alike to one of judgedMethods. One in the
// letters of the protocol is not: those of judgedMethods are all lower case.
func (s *Scanner) flagMethod(method Value) {
	if !method.IsString() {
		return
	}
	text := method.Raw[1 : len(method.Raw)-1]
	for _, c := range text {
		if (c < 'a' || c > 'z') && c != '/' && c != '_' {
			s.flagTwin(s.names.unescape(text), judgedMethods)
			return
		}
	}
}
