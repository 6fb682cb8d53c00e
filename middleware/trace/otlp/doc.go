// Package otlp sends attache's spans and metrics to an OpenTelemetry collector, by
// OTLP/HTTP with binary protobuf (opentelemetry.io/docs/specs/otlp).
//
// OpenTelemetry's own exporters bring gRPC and the generated messages with them, and
// so cost a program that exports nothing 1.3 ms at every start. This package writes the
// few messages with [protowire], and runs nothing at package init. The SDK, which makes, queues and aggregates spans and
// metrics, is OpenTelemetry's. Tests read what is sent with the generated messages.
//
// It writes what attache makes: spans without links and events; sums and histograms
// of plain numbers, without exemplars. It leaves out anything else.
//
// What the collector does not take is dropped, and Options.Failed is called. Only
// the SDK's goroutines wait for the collector.
package otlp
