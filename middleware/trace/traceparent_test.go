package trace_test

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/attache-mcp/attache/middleware/trace"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	valid   = "00-" + traceID + "-" + spanID + "-01"
)

// traceparents has the cases of the W3C test suite for traceparent, and some more.
var traceparents = []struct {
	name, text string
	want       string // "" if text is not valid
}{
	{"sampled", valid, valid},
	{"not sampled", valid[:53] + "00", valid[:53] + "00"},
	{"random trace id", valid[:53] + "03", valid[:53] + "03"},
	{"unknown flags", valid[:53] + "ff", valid[:53] + "03"},
	{"a flag of the high digit", valid[:53] + "f0", valid[:53] + "00"},
	{"a higher version", "01" + valid[2:], valid},
	{"a higher version, with more", "cc" + valid[2:] + "-what-the-future-brings", valid},
	{"a higher version, with a dash", "cc" + valid[2:] + "-", valid},
	{"a higher version, with no dash", "cc" + valid[2:] + ".what", ""},
	{"empty", "", ""},
	{"short", valid[:54], ""},
	{"long", valid + "-", ""},
	{"longer", valid + "0", ""},
	{"version ff", "ff" + valid[2:], ""},
	{"version of letters", "zz" + valid[2:], ""},
	{"version in upper case", "0A" + valid[2:], ""},
	{"trace id of zeros", "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01", ""},
	{"span id of zeros", "00-" + traceID + "-0000000000000000-01", ""},
	{"trace id in upper case", "00-" + strings.ToUpper(traceID) + "-" + spanID + "-01", ""},
	{"span id in upper case", "00-" + traceID + "-" + strings.ToUpper(spanID) + "-01", ""},
	{"trace id with a dot", "00-." + traceID[1:] + "-" + spanID + "-01", ""},
	{"span id with a dot", "00-" + traceID + "-" + spanID[1:] + ".-01", ""},
	{"flags with a dot", valid[:53] + ".0", ""},
	{"flags in upper case", valid[:53] + "0A", ""},
	{"trace id too short", "00-" + traceID[1:] + "-" + spanID + "-01-", ""},
	{"dashes elsewhere", "00_" + traceID + "_" + spanID + "_01", ""},
	{"space before", " " + valid, ""},
	{"space after", valid + " ", ""},
	{"not ASCII", "00-" + traceID[:30] + "é-" + spanID + "-01", ""},
}

func TestTraceparent(t *testing.T) {
	for _, test := range traceparents {
		if got := trace.Parse(test.text); got != test.want {
			t.Errorf("%s: %q is %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

// A traceparent that is valid here is valid for OpenTelemetry, with the same meaning, and the other way round.
// OpenTelemetry is stricter about the flags of version 00, and about the end of higher versions.
func FuzzTraceparent(f *testing.F) {
	for _, test := range traceparents {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := trace.Parse(text)
		if got == "" {
			ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": text})
			if c := oteltrace.SpanContextFromContext(ctx); c.IsValid() && len(text) == len(valid) { // OpenTelemetry accepts a dash behind version 00
				t.Errorf("%q is not valid here, and OpenTelemetry reads it as %+v", text, c)
			}
			return
		}
		if again := trace.Parse(got); again != got {
			t.Errorf("%q is %q, and that is %q", text, got, again)
		}
		// OpenTelemetry's parser does not support the random flag.
		flags := got[:54] + string('0'+got[54]&1)
		ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": flags})
		c := oteltrace.SpanContextFromContext(ctx)
		if !c.IsValid() || c.TraceID().String() != got[3:35] || c.SpanID().String() != got[36:52] {
			t.Errorf("%q is %q, which OpenTelemetry reads as %+v", text, got, c)
		}
	})
}

func TestNewTrace(t *testing.T) {
	a, b := trace.Begin(), trace.Begin()
	if trace.Parse(a) != a || !strings.HasSuffix(a, "-03") || a[3:35] == b[3:35] || a[36:52] == b[36:52] {
		t.Errorf("two new traces are %q and %q", a, b)
	}
	unsampled := valid[:53] + "02"
	c := trace.Child(unsampled)
	if trace.Parse(c) != c || c[:36] != unsampled[:36] || c[52:] != unsampled[52:] || c[36:52] == spanID {
		t.Errorf("the child of %q is %q", unsampled, c)
	}
}
