package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/trace/otlp"
)

// telemetrySettings are the settings in the OTEL_ variables
// (opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables). The
// SDK itself reads others: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, and those
// of samplers, limits, batches and intervals.
type telemetrySettings struct {
	traces, metrics signalSettings
}

// signalSettings select the exporters of spans or metrics.
type signalSettings struct {
	console bool
	otlp    *otlp.Options // nil without an OTLP exporter
}

func (s signalSettings) off() bool { return !s.console && s.otlp == nil }

// readTelemetry reads the variables. Nothing is exported unless one of them names an
// endpoint or an exporter. It returns the valid settings together with the problems,
// because a mistake must not stop a session.
func readTelemetry(getenv func(string) string) (t telemetrySettings, problems []error) {
	if strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true") {
		return t, nil
	}
	var err error
	if t.traces, err = readSignal(getenv, "TRACES"); err != nil {
		problems = append(problems, fmt.Errorf("spans are not exported: %w", err))
	} else if !t.traces.off() {
		problems = append(problems, samplerProblems(getenv)...)
	}
	if t.metrics, err = readSignal(getenv, "METRICS"); err != nil {
		problems = append(problems, fmt.Errorf("metrics are not exported: %w", err))
	}
	return t, problems
}

// readSignal reads the variables of one signal, TRACES or METRICS.
func readSignal(getenv func(string) string, signal string) (s signalSettings, err error) {
	v := otlpVariables{getenv, signal}
	exporter := "OTEL_" + signal + "_EXPORTER"
	asked := getenv(exporter)
	if asked == "" && v.get("ENDPOINT") != "" {
		asked = "otlp"
	}
	for name := range strings.SplitSeq(asked, ",") {
		switch strings.TrimSpace(name) {
		case "", "none":
		case "console":
			s.console = true
		case "otlp":
			if s.otlp, err = v.options(); err != nil {
				return signalSettings{}, err
			}
		default:
			return signalSettings{}, fmt.Errorf("%s is %q: attache has otlp, console and none", exporter, name)
		}
	}
	return s, nil
}

// samplers are the values of OTEL_TRACES_SAMPLER that the SDK has.
var samplers = []string{
	"always_on", "always_off", "traceidratio",
	"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
}

// samplerProblems returns errors for sampler settings that the SDK, which reads the variables
// itself, does not support.
func samplerProblems(getenv func(string) string) []error {
	const name, ratio = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	sampler := strings.ToLower(strings.TrimSpace(getenv(name)))
	if sampler == "" {
		return nil
	}
	if !slices.Contains(samplers, sampler) {
		return []error{fmt.Errorf("%s is %q and parentbased_always_on is used: write one of %s", name, sampler, strings.Join(samplers, ", "))}
	}
	arg := strings.TrimSpace(getenv(ratio))
	if arg == "" || !strings.HasSuffix(sampler, "traceidratio") {
		return nil
	}
	if n, err := strconv.ParseFloat(arg, 64); err != nil || !(n >= 0 && n <= 1) {
		return []error{fmt.Errorf("%s is %q and 1 is used: write a ratio from 0 to 1", ratio, arg)}
	}
	return nil
}

// otlpVariables are the variables of the OTLP exporter. The one for a signal takes precedence
// over the one for all signals.
type otlpVariables struct {
	getenv func(string) string
	signal string
}

const otlpPrefix = "OTEL_EXPORTER_OTLP_"

func (v otlpVariables) get(name string) string {
	return cmp.Or(v.getenv(otlpPrefix+v.signal+"_"+name), v.getenv(otlpPrefix+name))
}

func (v otlpVariables) options() (*otlp.Options, error) {
	switch protocol := v.get("PROTOCOL"); protocol {
	case "", "http/protobuf":
	default:
		return nil, fmt.Errorf("%sPROTOCOL is %q: attache speaks http/protobuf, which collectors take at port 4318", otlpPrefix, protocol)
	}
	o := &otlp.Options{Endpoint: v.endpoint()}
	var err error
	if o.Headers, err = v.headers(); err != nil {
		return nil, err
	}
	if ms := v.get("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("%sTIMEOUT is %q: write milliseconds", otlpPrefix, ms)
		}
		o.Timeout = time.Duration(n) * time.Millisecond
	}
	switch c := v.get("COMPRESSION"); c {
	case "", "none":
	case "gzip":
		o.Gzip = true
	default:
		return nil, fmt.Errorf("%sCOMPRESSION is %q: write gzip or none", otlpPrefix, c)
	}
	if o.Delta, err = v.delta(); err != nil {
		return nil, err
	}
	o.TLS, err = v.tls()
	return o, err
}

// delta reports whether the variable demands delta temporality. For the instruments of attache,
// lowmemory is the same.
func (v otlpVariables) delta() (bool, error) {
	const name = otlpPrefix + "METRICS_TEMPORALITY_PREFERENCE"
	if v.signal != "METRICS" {
		return false, nil
	}
	preference := v.getenv(name)
	switch strings.ToLower(preference) {
	case "", "cumulative":
		return false, nil
	case "delta", "lowmemory":
		return true, nil
	}
	return false, fmt.Errorf("%s is %q: write cumulative, delta or lowmemory", name, preference)
}

// endpoint returns the URL of the signal. It appends the signal's path to a URL for all signals,
// and uses a URL for this signal unchanged.
func (v otlpVariables) endpoint() string {
	if own := v.getenv(otlpPrefix + v.signal + "_ENDPOINT"); own != "" {
		return own
	}
	base := cmp.Or(v.getenv(otlpPrefix+"ENDPOINT"), "http://localhost:4318")
	return strings.TrimSuffix(base, "/") + "/v1/" + strings.ToLower(v.signal)
}

// headers returns the headers that the variable lists as name=value,name=value, with the values
// percent-encoded. A header is often a secret, so the error does not quote the variable. The secret may also be
// in what is read as the name, if somebody wrote "api-key: a2V5=" or "a2V/eQ==", and net/http would quote that.
func (v otlpVariables) headers() (map[string]string, error) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(v.get("HEADERS"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, ": \t\"/") || err != nil {
			return nil, fmt.Errorf("%sHEADERS cannot be read: write name=value,name=value", otlpPrefix)
		}
		out[name] = value
	}
	return out, nil
}

// tls returns a configuration with the certificates that the variables name, nil for the default.
func (v otlpVariables) tls() (*tls.Config, error) {
	ca, cert, key := v.get("CERTIFICATE"), v.get("CLIENT_CERTIFICATE"), v.get("CLIENT_KEY")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := cli.ReadAtMost(ca, 1<<20)
		if err != nil {
			return nil, fmt.Errorf("%sCERTIFICATE: %s: %w", otlpPrefix, ca, cli.Unreadable(err))
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%sCERTIFICATE: there is no certificate in %s", otlpPrefix, ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%sCLIENT_CERTIFICATE and %[1]sCLIENT_KEY cannot be read as a pair: %w: give both, as PEM", otlpPrefix, cli.Reason(err))
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
