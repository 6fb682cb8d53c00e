package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestLoggerWritesWhereItIsTold keeps the logger away from stderr itself, which
// may block: only what stands before it does not.
func TestLoggerWritesWhereItIsTold(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var direct, sink bytes.Buffer
		s := &Settings{}
		s.Log.Format, s.Log.Level = format, "info"
		newLogger(process{Stderr: &direct}, s, &sink).Warn("told")
		if direct.Len() > 0 || !strings.Contains(sink.String(), "told") {
			t.Errorf("%s: stderr got %q, the sink %q", format, direct.String(), sink.String())
		}
	}
}
