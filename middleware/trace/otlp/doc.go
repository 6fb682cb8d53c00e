// Package otlp sends attache's spans and metrics to an OpenTelemetry collector, by
// OTLP/HTTP with binary protobuf (opentelemetry.io/docs/specs/otlp).
//
// It is there because of what the exporters of OpenTelemetry cost a program that
// exports nothing: linked, they add 0.8 ms to every start and 2.3 MB to the memory
// of every process, as they bring gRPC and the generated messages with them. Here
// the few messages are written with [protowire], and nothing runs at package
// init. The SDK, which makes spans and metrics, and queues and aggregates them,
// is OpenTelemetry's own. Tests read what is sent with the generated messages.
//
// It writes what attache makes: spans without links and events; sums and
// histograms of plain numbers, without exemplars. Anything else is left out.
//
// A collector that cannot be reached is told of once, through Options.Failed, and
// what could not be sent is dropped. Nothing but the SDK's own goroutines ever
// waits for it.
package otlp
