// Package otlp sends attache's spans and metrics to an OpenTelemetry collector, with
// OTLP/HTTP and binary protobuf (opentelemetry.io/docs/specs/otlp).
//
// OpenTelemetry's own exporters depend on gRPC and the generated messages, which costs a
// program that exports nothing 1.3 ms at every start. This package encodes the few messages
// with [protowire], and runs nothing at package init. The SDK, which creates, queues and
// aggregates spans and metrics, is OpenTelemetry's. Tests decode the requests with the
// generated messages.
//
// It encodes what attache creates: spans without events; sums and histograms
// of plain numbers, without exemplars. It leaves out anything else.
//
// A message that the collector does not accept is dropped, and Options.Failed is called.
// Only the SDK's goroutines wait for the collector.
package otlp
