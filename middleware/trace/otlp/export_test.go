package otlp

import (
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Hasten makes e retry immediately.
func Hasten(e sdktrace.SpanExporter) { e.(spanExporter).pause = time.Nanosecond }
