package otlp

import (
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Hasten has e try again at once.
func Hasten(e sdktrace.SpanExporter) { e.(spanExporter).c.pause = time.Nanosecond }
