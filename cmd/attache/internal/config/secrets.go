package config

import (
	"cmp"
	"os"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/proxy/record"
)

// Secrets returns the values that must not reach a recording: secrets, the values of variables whose
// names look like those of secrets, and the credentials for the remote server and the database.
func Secrets(p cli.Process, s *Settings, secrets []string) record.Secrets {
	out := record.Secrets{Values: append([]string(nil), secrets...), KeyPrefix: s.Identity.KeyPrefix, Later: p.Tokens.All}
	out.Home = cmp.Or(p.Getenv("HOME"), p.Getenv("USERPROFILE"))
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
