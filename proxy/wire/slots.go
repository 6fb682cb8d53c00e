package wire

var slotNames = [slots]string{"", "jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "_meta"}

// setSlot sets the slot of c's member with that name, and flags a name that a lenient
// reader takes for another one with a meaning in c.
func (s *Scanner) setSlot(c *container, name []byte) {
	switch {
	case c.role == roleTop:
		s.setSlotAmong(c, name, slotVersion, slotError)
	case c.role == roleParams:
		s.setSlotAmong(c, name, slotName, slotMeta)
	case c.role == roleArguments && int(c.level) < len(s.ArgumentNames):
		s.flagTwin(name, s.ArgumentNames[c.level])
	}
}

func (s *Scanner) setSlotAmong(c *container, name []byte, first, last slot) {
	switch c.slot = slotAmong(name, first, last); c.slot {
	case slotNone:
		s.flagTwin(name, slotNames[first:last+1])
	case slotID:
		s.m.ids++
	}
}

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

// flagTwin flags name if it is not one of known, but a lenient reader takes it for one
// of them.
func (s *Scanner) flagTwin(name []byte, known []string) {
	for _, k := range known {
		switch {
		case string(name) == k:
			s.m.lacks = false
		case SameName(name, k):
			s.flag(TwinName)
			s.m.twin = k
		}
	}
}

// flagMethod flags a method that is [SameName] as one of methods but not equal to it, because
// a lenient server may execute that one. A method of lower-case letters cannot be one, because
// all of methods are lower case.
func (s *Scanner) flagMethod(method Value) {
	if !method.IsString() {
		return
	}
	text := method.Raw[1 : len(method.Raw)-1]
	for _, c := range text {
		if (c < 'a' || c > 'z') && c != '/' && c != '_' {
			s.flagTwin(s.names.unescape(text), methods[:])
			return
		}
	}
}
