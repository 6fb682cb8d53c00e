package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Each test describes the settings in one line for each signal.
func TestReadTelemetry(t *testing.T) {
	const local = "http://localhost:4318"
	tests := []struct {
		env     string // "NAME=value NAME=value", with OTEL_ for each
		traces  string
		metrics string
		problem string
	}{
		{"", "off", "off", ""},
		{"SERVICE_NAME=x RESOURCE_ATTRIBUTES=a=b EXPORTER_OTLP_HEADERS=a=b EXPORTER_OTLP_PROTOCOL=grpc", "off", "off", ""},
		{"EXPORTER_OTLP_ENDPOINT=http://c:4318", "http://c:4318/v1/traces", "http://c:4318/v1/metrics", ""},
		{"EXPORTER_OTLP_ENDPOINT=https://c/otlp/", "https://c/otlp/v1/traces", "https://c/otlp/v1/metrics", ""},
		{"EXPORTER_OTLP_TRACES_ENDPOINT=http://c/own", "http://c/own", "off", ""},
		{"EXPORTER_OTLP_ENDPOINT=http://c EXPORTER_OTLP_METRICS_ENDPOINT=http://m/", "http://c/v1/traces", "http://m/", ""},
		{"TRACES_EXPORTER=otlp", local + "/v1/traces", "off", ""},
		{"METRICS_EXPORTER=otlp", "off", local + "/v1/metrics", ""},
		{"TRACES_EXPORTER=console", "console", "off", ""},
		{"TRACES_EXPORTER=console,otlp METRICS_EXPORTER=none", "console " + local + "/v1/traces", "off", ""},
		{"TRACES_EXPORTER=none EXPORTER_OTLP_ENDPOINT=http://c", "off", "http://c/v1/metrics", ""},
		{"TRACES_EXPORTER=zipkin METRICS_EXPORTER=otlp", "off", local + "/v1/metrics", `OTEL_TRACES_EXPORTER is "zipkin"`},
		{"TRACES_EXPORTER=console TRACES_SAMPLER=foo", "console", "off", `OTEL_TRACES_SAMPLER is "foo" and parentbased_always_on is used: write one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio`},
		{"TRACES_EXPORTER=console TRACES_SAMPLER=TraceIDRatio TRACES_SAMPLER_ARG=half", "console", "off", `OTEL_TRACES_SAMPLER_ARG is "half" and 1 is used: write a ratio from 0 to 1`},
		{"TRACES_EXPORTER=console TRACES_SAMPLER=parentbased_traceidratio TRACES_SAMPLER_ARG=50", "console", "off", `OTEL_TRACES_SAMPLER_ARG is "50"`},
		{"TRACES_EXPORTER=console TRACES_SAMPLER=parentbased_traceidratio TRACES_SAMPLER_ARG=NaN", "console", "off", `OTEL_TRACES_SAMPLER_ARG is "NaN"`},
		{"TRACES_EXPORTER=console TRACES_SAMPLER=traceidratio TRACES_SAMPLER_ARG=0.5", "console", "off", ""},
		{"TRACES_EXPORTER=console TRACES_SAMPLER=always_on TRACES_SAMPLER_ARG=unread", "console", "off", ""},
		{"METRICS_EXPORTER=console TRACES_SAMPLER=foo", "off", "console", ""},
		{"SDK_DISABLED=true EXPORTER_OTLP_ENDPOINT=http://c", "off", "off", ""},
		{"SDK_DISABLED=TRUE TRACES_EXPORTER=console", "off", "off", ""},
		{"SDK_DISABLED=1 TRACES_EXPORTER=console", "console", "off", ""}, // the specification: true alone
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_PROTOCOL=http/protobuf", local + "/v1/traces", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_PROTOCOL=grpc", "off", "off", "attache speaks http/protobuf, which collectors take at port 4318"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "off", "off", `PROTOCOL is "http/json"`},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_TIMEOUT=1500", local + "/v1/traces 1.5s", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_TIMEOUT=1500 EXPORTER_OTLP_TRACES_TIMEOUT=5", local + "/v1/traces 5ms", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_TIMEOUT=1s", "off", "off", `TIMEOUT is "1s"`},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_COMPRESSION=gzip", local + "/v1/traces gzip", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_COMPRESSION=none", local + "/v1/traces", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_COMPRESSION=zstd", "off", "off", `COMPRESSION is "zstd"`},
		{"METRICS_EXPORTER=otlp EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=Delta", "off", local + "/v1/metrics delta", ""},
		{"METRICS_EXPORTER=otlp EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=lowmemory", "off", local + "/v1/metrics delta", ""},
		{"METRICS_EXPORTER=otlp EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=cumulative", "off", local + "/v1/metrics", ""},
		{"METRICS_EXPORTER=otlp EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=both", "off", "off", `OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE is "both"`},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=both", local + "/v1/traces", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_HEADERS=a=b,c=Bearer%20d=,", local + "/v1/traces a:b c:Bearer d=", "off", ""},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_HEADERS=topsecret", "off", "off", "HEADERS cannot be read"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_HEADERS=a=%zztopsecret", "off", "off", "HEADERS cannot be read"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_HEADERS=api-key:topsecret=", "off", "off", "HEADERS cannot be read"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_HEADERS=top/secret==", "off", "off", "HEADERS cannot be read"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_CERTIFICATE=/nowhere", "off", "off", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_CLIENT_KEY=/nowhere", "off", "off", "OTEL_EXPORTER_OTLP_CLIENT_KEY"},
		{"TRACES_EXPORTER=otlp EXPORTER_OTLP_CLIENT_CERTIFICATE=env_test.go EXPORTER_OTLP_CLIENT_KEY=env_test.go", "off", "off", "as a pair: tls: failed to find any PEM data"},
	}
	for _, test := range tests {
		env := map[string]string{}
		for entry := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(entry, "=")
			env["OTEL_"+name] = value
		}
		got, problems := readTelemetry(func(name string) string { return env[name] })
		problem := fmt.Sprint(problems)
		if describe(got.traces) != test.traces || describe(got.metrics) != test.metrics || !strings.Contains(problem, test.problem) || (test.problem == "") != (problems == nil) {
			t.Errorf("%s\ngot  %s, %s, %s\nwant %s, %s, %s", test.env, describe(got.traces), describe(got.metrics), problem, test.traces, test.metrics, test.problem)
		}
		if strings.Contains(problem, "topsecret") {
			t.Errorf("%s: %s", test.env, problem)
		}
	}
}

func describe(s signalSettings) string {
	var words []string
	if s.console {
		words = append(words, "console")
	}
	if o := s.otlp; o != nil {
		words = append(words, o.Endpoint)
		if o.Timeout != 0 {
			words = append(words, o.Timeout.String())
		}
		if o.Delta {
			words = append(words, "delta")
		}
		if o.Gzip {
			words = append(words, "gzip")
		}
		for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
			words = append(words, name+":"+o.Headers[name])
		}
	}
	if words == nil {
		return "off"
	}
	return strings.Join(words, " ")
}
