package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// MarkVariable marks the session's variables that attache gives to a server; see [Mark].
const MarkVariable = setting.Prefix + "_INJECTED"

// Mark returns the value of [MarkVariable] for a server with the variables of getenv: a digest of the
// session's variables, and one of those in which clients give servers their session and workspace. If
// only the second differs later, the server, or a program that it runs, has started another client,
// whose session and workspace are its own.
func Mark(getenv func(string) string, prefixes []string) string {
	var own []string
	for _, prefix := range append([]string{setting.Prefix}, prefixes...) {
		own = append(own, prefix+"_SESSION_ID", prefix+"_WORKSPACE_ID", prefix+"_WORKSPACE_PATH")
	}
	host := DefaultSettings("").Session.HostEnv // of all processes alike
	return digest(getenv, own) + "-" + digest(getenv, slices.Concat(host.Session, host.Workspace))
}

// digest returns a short digest of the values of variables.
func digest(getenv func(string) string, names []string) string {
	h := sha256.New()
	for _, name := range names {
		h.Write([]byte(getenv(name) + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// inOtherClient reports whether the variables of the session are those of another client, in a server of
// which this one was started.
func (l *loader) inOtherClient(s *Settings) bool {
	mark := l.Getenv(MarkVariable)
	if mark == "" {
		return false
	}
	was, wasHost, _ := strings.Cut(mark, "-")
	own, host, _ := strings.Cut(Mark(l.Getenv, s.Session.EnvPrefixes), "-")
	return own == was && host != wasHost
}
