package config

import (
	"cmp"
	"net/url"
	"os"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/proxy/record"
)

// Secrets returns the values that must not reach a recording: secrets, the values of variables whose
// names look like those of secrets, and the credentials for the remote server, the database and the
// collector.
func Secrets(p cli.Process, s *Settings, secrets []string) record.Secrets {
	out := record.Secrets{Values: append([]string(nil), secrets...), KeyPrefix: s.Identity.KeyPrefix, Later: p.Tokens.All}
	out.Home = cmp.Or(p.Getenv("HOME"), p.Getenv("USERPROFILE"))
	out.Host, _ = os.Hostname()
	for _, entry := range p.Env {
		name, value, _ := strings.Cut(entry, "=")
		if record.CredentialName(name) {
			out.Values = append(out.Values, value)
		}
		if strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && strings.HasSuffix(name, "HEADERS") {
			out.Values = append(out.Values, collectorSecrets(value)...)
		}
	}
	for name, value := range s.Server.Env {
		if record.CredentialName(name) {
			out.Values = append(out.Values, value)
		}
	}
	out.Values = append(out.Values, s.Server.Remote.secrets(p)...)
	if url, err := s.Store.Address(p); err == nil && url != "" {
		out.Values = append(out.Values, url)
	}
	return out
}

// collectorSecrets returns the credentials among headers in the form name=value,name=value. Others,
// such as stream-name=default, may be ordinary words.
func collectorSecrets(headers string) (all []string) {
	for header := range strings.SplitSeq(headers, ",") {
		name, value, _ := strings.Cut(header, "=")
		if text, err := url.PathUnescape(value); err == nil {
			value = text
		}
		const long = 20 // x-honeycomb-team has a key
		if value = strings.TrimSpace(value); record.CredentialName(strings.TrimSpace(name)) || len(value) >= long {
			_, token, _ := strings.Cut(value, " ") // after "Bearer"
			all = append(all, value, token)
		}
	}
	return all
}
