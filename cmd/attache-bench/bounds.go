package main

// A bound is a figure to reach.
type bound struct {
	row     string
	figure  string
	atLeast bool
	unit    string  // of the limits, empty for a ratio
	plain   float64 // for the default chain
	filling float64 // for a fill rule and a briefing
}

// bounds is the table of the project's issue on speed and memory, with what each
// figure is set against.
func bounds() []bound {
	const byLine, byCopy = " / line", " / copy"
	return []bound{
		{row: "result-200B", figure: "p50 of a small call" + byLine, plain: 1.0, filling: 1.1},
		{row: "pipelined", figure: "messages a second, 64 in flight" + byLine, atLeast: true, plain: 1.05, filling: 0.9},
		{row: "cpu", figure: "CPU per 100,000 messages" + byLine, plain: 1.0, filling: 1.6},
		{row: "result-4MiB", figure: "results of 4 MiB" + byCopy, plain: 1.25, filling: 1.25},
		{row: "args-4MiB", figure: "arguments of 4 MiB" + byCopy, plain: 1.25, filling: 1.25},
		{row: "result-32MiB", figure: "results of 32 MiB" + byCopy, plain: 1.25, filling: 1.25},
		{row: "args-32MiB", figure: "arguments of 32 MiB" + byCopy, plain: 1.25, filling: 1.25},
		{row: "memory-32MiB", figure: "peak resident after 32 MiB frames", unit: "MiB", plain: 40, filling: 40},
		{row: "memory-1GiB", figure: "peak resident after 1 GiB frames", unit: "MiB", plain: 40, filling: 40},
		{row: "start", figure: "start to the first answer, more than line", unit: "ms", plain: 6, filling: 8},
		{row: "one-cpu", figure: "p50 with all on one CPU" + byLine, plain: 0.15, filling: 0.2},
	}
}

// limit is the bound for the subject.
func (b bound) limit(subject string) float64 {
	if subject == filling {
		return b.filling
	}
	return b.plain
}

// verdict says how the subject's figure stands to the bound. A figure is judged
// as it is measured, not as it is printed.
func (b bound) verdict(subject string, s summary) string {
	limit := b.limit(subject)
	switch {
	case s.none():
		return "-"
	case b.atLeast && s.Median >= limit, !b.atLeast && s.Median <= limit:
		return "yes"
	}
	return "no"
}
