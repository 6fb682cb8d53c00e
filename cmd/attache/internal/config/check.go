package config

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// CheckFiles returns the mistakes in the files that the settings name. A session starts
// without most of these files and warns; here each is a mistake.
func CheckFiles(p cli.Process, s *Settings) error {
	var all setting.Problems
	var key setting.Problems
	if _, _, err := APIKey(p, s); errors.As(err, &key) {
		all = append(all, key...)
	}
	if errors.As(CheckPolicyToken(p, s), &key) {
		all = append(all, key...)
	}
	if s.Policy.Dir != "" {
		for _, found := range filesource.Check(s.Policy.Dir) {
			if !found.Warning {
				all.Add(s.Origin(policyKey(&s.Policy)), "policy.dir: %v", found)
			}
		}
	}
	if at := s.Origin("identity.keys_file"); !at.Default() {
		if err := checkKeysFile(s); err != nil {
			all.Add(at, "identity.keys_file: %v", err)
		}
	}
	all = append(all, CheckIdentity(s)...)
	all = append(all, CheckAudit(s)...)
	if dir := directory(s.Record); dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			all.Add(s.Origin("record"), "record: there is no directory %s: make it, or name another file", dir)
		}
	}
	return all.Err()
}

// UnknownVariables returns a text for each variable that has attache's prefix and that attache
// does not read.
func UnknownVariables(p cli.Process, s *Settings) []string {
	known := []string{APIKeyVariable, clientconfig.EntryVariable, TokenVariable, "ATTACHE_CONFIG", SessionTokenVariable, ParentVariable, "ATTACHE_USER_ID", "ATTACHE_TENANT_ID", s.Policy.TokenEnv}
	for _, o := range Options(s) {
		if o.Flag != "" {
			known = append(known, o.Variable())
		}
		if o.Injected != "" {
			known = append(known, setting.Prefix+"_"+o.Injected)
		}
	}
	var texts []string
	for _, entry := range p.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, setting.Prefix+"_") || strings.HasPrefix(name, HeaderPrefix) || strings.HasPrefix(name, EnvHeaderPrefix) || slices.Contains(known, name) {
			continue
		}
		what := "see \"attache --help\""
		if near := cli.Nearest(name, known); near != "" {
			what = "did you mean " + near + "?"
		}
		texts = append(texts, name+": no such variable is read: "+what)
	}
	return texts
}

// checkKeysFile says what is wrong with the file of keys.
func checkKeysFile(s *Settings) error {
	_, err := identity.List(s.Identity.KeysFile)
	return err
}

// CheckPolicyToken returns an error if the variable for the endpoint's token is configured and
// not set.
func CheckPolicyToken(p cli.Process, s *Settings) error {
	name := s.Policy.TokenEnv
	if s.Policy.URL == "" || name == "" || p.Getenv(name) != "" {
		return nil
	}
	var all setting.Problems
	all.Add(s.Origin("policy.token_env"), "policy.token_env: the variable %s is not set: set it to the token, or leave policy.token_env out", name)
	return all
}

// CheckAudit returns what is wrong with the file for audit records.
func CheckAudit(s *Settings) (all setting.Problems) {
	if s.Audit.File == "" {
		if s.Audit.Required {
			all.Add(s.Origin("audit.required"), "audit.required: there is no audit.file: name one, or leave this out")
		}
		return all
	}
	if err := chain.Check(s.Audit.File); err != nil {
		all.Add(s.Origin("audit.file"), "audit.file: %v", err)
	}
	return all
}
