package config

import (
	"os"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/proxy/record"
)

// Secrets returns what must not reach a recording: the keys in use, and the
// values of variables whose names say that they are secret.
func Secrets(p cli.Process, s *Settings, secrets []string) record.Secrets {
	out := record.Secrets{Values: append([]string(nil), secrets...), KeyPrefix: s.Identity.KeyPrefix, Later: p.Tokens.All, Home: p.Getenv("HOME")}
	if out.Home == "" {
		out.Home = p.Getenv("USERPROFILE")
	}
	out.Host, _ = os.Hostname()
	for _, entry := range p.Env {
		name, value, _ := strings.Cut(entry, "=")
		if record.CredentialName(name) {
			out.Values = append(out.Values, value)
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
