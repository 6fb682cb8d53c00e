package config

import (
	"strings"
	"testing"
)

// The entry of a repository may name a configuration that includes an address. Load fetches the
// address; LoadEntry does not.
func TestLoadEntryOpensNoConnection(t *testing.T) {
	const nobody = "https://127.0.0.1:1/rules.yaml"
	p, _ := configured(t, "include: [{url: '"+nobody+"', digest: 'sha256:"+strings.Repeat("0", 64)+"'}]\nlog: {level: debug}\n")
	if _, err := Load(p, nil, nil); err == nil || !strings.Contains(err.Error(), "cannot be fetched") {
		t.Errorf("Load: %v", err)
	}
	s, err := LoadEntry(p, nil, []string{"server"})
	if err != nil || s.Log.Level != "debug" {
		t.Errorf("LoadEntry: %v", err)
	}
}

// A client may expand $NAME and ${NAME} before it starts attache.
func TestLoadEntryIgnoresVariables(t *testing.T) {
	p, _ := configured(t, "")
	for _, args := range [][]string{{"--workspace", "$HOME/src"}, {"--workspace=$HOME/src"}, {"--workspace", "${workspaceFolder}"}} {
		s, err := LoadEntry(p, append(args, "--trust", "sandboxed"), []string{"server"})
		if err != nil || s.Session.Trust != "sandboxed" || s.Session.Workspace != "" {
			t.Errorf("%v: %v", args, err)
		}
	}
}
