package trace

// FixIDs makes c use 1111… for every new trace and 2222… for every new span.
func (c *Conn) FixIDs() {
	c.newID = func(id []byte) {
		for i := range id {
			id[i] = map[int]byte{16: 0x11, 8: 0x22}[len(id)]
		}
	}
}

// Parse returns the normal form of a traceparent, "" if it is not valid.
func Parse(text string) string {
	return format(parse(text))
}

// Begin and Child return a new trace, and a new span of a trace.
func Begin() string              { return Child("") }
func Child(parent string) string { return format(newSpan(parse(parent), randomID)) }
