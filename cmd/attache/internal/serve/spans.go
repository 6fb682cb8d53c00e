package serve

import (
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Attributes of the HTTP semantic conventions.
//
// https://opentelemetry.io/docs/specs/semconv/http/http-spans/#http-server
const (
	requestMethodKey   = attribute.Key("http.request.method")
	originalMethodKey  = attribute.Key("http.request.method_original")
	routeKey           = attribute.Key("http.route")
	responseStatusKey  = attribute.Key("http.response.status_code")
	pathKey            = attribute.Key("url.path")
	schemeKey          = attribute.Key("url.scheme")
	protocolVersionKey = attribute.Key("network.protocol.version")
	userAgentKey       = attribute.Key("user_agent.original")
	errorTypeKey       = attribute.Key("error.type")
)

// maxAttribute bounds attributes whose values the client chooses.
const maxAttribute = 256

// traceRequests returns a handler that records a span for each request, in the trace that its
// headers name. The span of a GET lasts as long as its stream. Without an exporter of spans
// the client's span stands for that of the request.
func (e *endpoint) traceRequests(next http.Handler) http.Handler {
	tracer := e.telemetry.Tracer
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tracer == nil && len(r.Header["Traceparent"]) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// From here on, spanOf looks for the request of each call.
		e.traced.Store(true)
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		if tracer == nil {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		name, attributes := e.describeRequest(r)
		ctx, span := tracer.Start(ctx, name, oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithAttributes(attributes...))
		seen := &response{ResponseWriter: w}
		defer func() { // also if the handler panics
			if seen.hijacked != nil {
				seen.hijacked.whenClosed(func(int64) { record(span, http.StatusOK) })
				return
			}
			record(span, seen.status)
		}()
		next.ServeHTTP(seen, r.WithContext(ctx))
	})
}

// describeRequest returns the name of a request's span and its attributes. They contain neither
// the query nor the client's address. The conventions demand _OTHER and HTTP for an unknown method, because
// a client can invent any number of them.
func (e *endpoint) describeRequest(r *http.Request) (name string, attributes []attribute.KeyValue) {
	version := strings.TrimPrefix(r.Proto, "HTTP/")
	if r.ProtoMajor > 1 {
		version = strconv.Itoa(r.ProtoMajor)
	}
	method, scheme := r.Method, "http"
	if r.TLS != nil {
		scheme = "https"
	}
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodConnect, http.MethodTrace:
		name = method
	default:
		attributes = append(attributes, originalMethodKey.String(clip(method)))
		method, name = "_OTHER", "HTTP"
	}
	return name + " " + e.Path, append(attributes,
		requestMethodKey.String(method), routeKey.String(e.Path), pathKey.String(e.Path), schemeKey.String(scheme),
		protocolVersionKey.String(version), userAgentKey.String(clip(r.UserAgent())))
}

// record ends a span with the status of the response. A request without a response is not an error:
// its client has left.
func record(span oteltrace.Span, status int) {
	defer span.End()
	if status == 0 {
		return
	}
	span.SetAttributes(responseStatusKey.Int(status))
	if status >= http.StatusInternalServerError {
		span.SetAttributes(errorTypeKey.String(strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
}

// clip shortens a text that a client chose, and makes it valid UTF-8, as OTLP requires.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxAttribute)], "") }

// spanOf returns a function that returns the span of the HTTP request with the call that has this
// raw id. It is asked for every call, so it looks for the request only if one had a span.
func (e *endpoint) spanOf(request func(id []byte) *http.Request) func(id []byte) oteltrace.SpanContext {
	return func(id []byte) oteltrace.SpanContext {
		if e.traced.Load() {
			if r := request(id); r != nil {
				return oteltrace.SpanContextFromContext(r.Context())
			}
		}
		return oteltrace.SpanContext{}
	}
}
