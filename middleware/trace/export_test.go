package trace

// FixIDs has every new trace be 1111…, every new span 2222….
func (t *Trace) FixIDs() {
	const span = "2222222222222222"
	t.begin = func() traceparent { return compose("11111111111111111111111111111111", span, sampled|random) }
	t.child = func(p traceparent) traceparent { return compose(p.traceID(), span, p.flags()) }
}

// Parse returns the normal form of a traceparent, "" if it is not valid.
func Parse(text string) string {
	p, _ := parse(text)
	return string(p)
}

// Begin and Child return new ones.
func Begin() string              { return string(begin()) }
func Child(parent string) string { return string(traceparent(parent).child()) }
