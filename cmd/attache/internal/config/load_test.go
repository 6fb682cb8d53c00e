package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/internal/testkit"
)

// load loads settings as a command with these arguments does.
func load(t *testing.T, p cli.Process, args ...string) (*Settings, error) {
	t.Helper()
	cmd := &cobra.Command{}
	flags := AddFlags(cmd)
	check(t, cmd.ParseFlags(args))
	return Load(p, flags, nil)
}

// configured writes text as the user's configuration file. It returns a process that finds the
// file, and the path of the file.
func configured(t *testing.T, text string, env ...string) (cli.Process, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "attache", "config.yaml")
	check(t, os.Mkdir(filepath.Dir(file), 0o700))
	check(t, os.WriteFile(file, []byte(text), 0o600))
	return cli.Process{Env: env, ConfigDir: dir}, file
}

// A workspace path that is not UTF-8 is refused: in JSON it would become another path.
func TestWorkspaceIsUTF8(t *testing.T) {
	p, _ := configured(t, "")
	if _, err := load(t, p, "--workspace", "/caf\xe9"); err == nil || !strings.Contains(err.Error(), "--workspace: is not UTF-8") {
		t.Errorf("error %v", err)
	}
}

// A token in place of the name of its file is refused and not shown.
func TestTokenIsNoFile(t *testing.T) {
	p, _ := configured(t, "")
	for name, isToken := range map[string]bool{"eyJ" + strings.Repeat("x", 60): true, "eyJ.jwt": false, strings.Repeat("x", 63): false} {
		_, err := load(t, p, "--token-file", name)
		if isToken && (err == nil || !strings.HasPrefix(err.Error(), "--token-file: is a token") || strings.Contains(err.Error(), name)) || !isToken && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If the configuration file cannot be read because of a broken link, attache does not start: the file
// may contain access rules.
func TestBrokenLink(t *testing.T) {
	for _, link := range []string{"attache/config.yaml", "attache"} {
		p, file := configured(t, "")
		broken := filepath.Join(p.ConfigDir, link)
		if err := errors.Join(os.RemoveAll(broken), os.Symlink(filepath.Join(p.ConfigDir, "none"), broken)); err != nil {
			t.Skip(err)
		}
		if _, err := load(t, p); err == nil || !strings.Contains(err.Error(), file+": cannot be read: the symbolic link "+broken+" leads to nothing") {
			t.Errorf("%s: %v", link, err)
		}
	}
	p, file := configured(t, "")
	check(t, os.Remove(file))
	linked := filepath.Join(t.TempDir(), "linked")
	if err := os.Symlink(p.ConfigDir, linked); err != nil {
		t.Skip(err)
	}
	p.ConfigDir = linked
	if _, err := load(t, p); err != nil {
		t.Errorf("no file behind a link to a directory: %v", err)
	}
}

func TestPrecedence(t *testing.T) {
	const file = `
session: {workspace: /file, workspace_id: file, id: file, trust: direct, env_prefixes: [PARA, ORBIT]}
policy: {scope: file, dir: /file}
log: {level: error, format: json}
record: /file/r
stdout_noise: drop
`
	tests := []struct {
		name, key string
		env       []string
		args      []string
		want      string
		from      string // "" for the file
	}{
		{"file", "session.workspace", nil, nil, "/file", ""},
		{"variable", "session.workspace", []string{"ATTACHE_WORKSPACE=/env"}, nil, "/env", "ATTACHE_WORKSPACE"},
		{"injected", "session.workspace", []string{"ATTACHE_WORKSPACE_PATH=/outer"}, nil, "/outer", "ATTACHE_WORKSPACE_PATH"},
		{"variable before injected", "session.workspace", []string{"ATTACHE_WORKSPACE_PATH=/outer", "ATTACHE_WORKSPACE=/env"}, nil, "/env", "ATTACHE_WORKSPACE"},
		{"first prefix", "session.workspace", []string{"ORBIT_WORKSPACE_PATH=/o", "PARA_WORKSPACE_PATH=/p"}, nil, "/p", "PARA_WORKSPACE_PATH"},
		{"own prefix first", "session.workspace", []string{"PARA_WORKSPACE_PATH=/p", "ATTACHE_WORKSPACE_PATH=/a"}, nil, "/a", "ATTACHE_WORKSPACE_PATH"},
		{"injected stays as it is", "session.workspace", []string{"PARA_WORKSPACE_PATH=Daily/notes"}, nil, "Daily/notes", "PARA_WORKSPACE_PATH"},
		{"no such prefix", "session.workspace", []string{"OTHER_WORKSPACE_PATH=/x"}, nil, "/file", ""},
		{"flag", "session.workspace", []string{"ATTACHE_WORKSPACE=/env"}, []string{"--workspace", "/flag"}, "/flag", "--workspace"},
		{"flag with =", "session.workspace", nil, []string{"--workspace=/flag"}, "/flag", "--workspace"},
		{"empty variable", "session.workspace", []string{"ATTACHE_WORKSPACE="}, nil, "/file", ""},
		{"empty flag", "session.workspace", []string{"ATTACHE_WORKSPACE=/env"}, []string{"--workspace", ""}, "/env", "ATTACHE_WORKSPACE"},
		{"address of a workspace", "session.workspace", nil, []string{"--workspace", "file:///w"}, "file:///w", "--workspace"},
		{"id", "session.workspace_id", []string{"PARA_WORKSPACE_ID=p"}, nil, "p", "PARA_WORKSPACE_ID"},
		{"id by flag", "session.workspace_id", []string{"ATTACHE_WORKSPACE_ID=e"}, []string{"--workspace-id", "f"}, "f", "--workspace-id"},
		{"session", "session.id", []string{"ATTACHE_SESSION_ID=e"}, nil, "e", "ATTACHE_SESSION_ID"},
		{"session, flag's own", "session.id", []string{"ATTACHE_SESSION_ID=e", "ATTACHE_SESSION=s"}, nil, "s", "ATTACHE_SESSION"},
		{"session by flag", "session.id", []string{"ATTACHE_SESSION=e"}, []string{"--session", "f"}, "f", "--session"},
		{"trust", "session.trust", []string{"ATTACHE_TRUST=sandboxed"}, nil, "sandboxed", "ATTACHE_TRUST"},
		{"unknown trust", "session.trust", []string{"PARA_TRUST_LEVEL=full"}, nil, "sandboxed", "PARA_TRUST_LEVEL"},
		{"trust by flag", "session.trust", []string{"ATTACHE_TRUST_LEVEL=sandboxed"}, []string{"--trust", "direct"}, "direct", "--trust"},
		{"scope", "policy.scope", []string{"ATTACHE_SCOPE=e"}, nil, "e", "ATTACHE_SCOPE"},
		{"log level", "log.level", []string{"ATTACHE_LOG_LEVEL=warn"}, nil, "warn", "ATTACHE_LOG_LEVEL"},
		{"log format", "log.format", nil, []string{"--log-format", "text"}, "text", "--log-format"},
		{"noise", "stdout_noise", []string{"ATTACHE_STDOUT_NOISE=forward"}, nil, "forward", "ATTACHE_STDOUT_NOISE"},
		{"record", "record", []string{"ATTACHE_RECORD=/e"}, []string{"--record", "/f"}, "/f", "--record"},
		{"policy directory", "policy.dir", []string{"ATTACHE_POLICY=/e"}, nil, "/e", "ATTACHE_POLICY"},
		{"policy address", "policy.url", []string{"ATTACHE_POLICY=/e"}, []string{"--policy", "https://h/"}, "https://h/", "--policy"},
		{"policy address ends the directory", "policy.dir", nil, []string{"--policy", "https://h/"}, "", "--policy"},
		{"key file", "identity.api_key_file", []string{"ATTACHE_API_KEY_FILE=/k"}, nil, "/k", "ATTACHE_API_KEY_FILE"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, path := configured(t, file, test.env...)
			s, err := load(t, p, test.args...)
			check(t, err)
			for _, o := range Options(s) {
				if o.Key == test.key && o.Value.String() != test.want {
					t.Errorf("%s = %q, want %q", o.Key, o.Value, test.want)
				}
			}
			if from := s.Origin(test.key); test.from == "" && from.File != path || from.Name != test.from {
				t.Errorf("it came from %v, want %q", from, test.from)
			}
		})
	}
}

// Each flag but --policy has a key, sets a scalar, and has a help text.
func TestFlagsHaveKeys(t *testing.T) {
	for _, o := range Options(DefaultSettings("")) {
		if o.Flag != "" && o.Key == "" && o.Flag != "policy" {
			t.Errorf("--%s has no key in the configuration", o.Flag)
		}
		if _, ok := o.Value.(setting.Scalar); o.Flag != "" && !ok {
			t.Errorf("--%s is no scalar", o.Flag)
		}
		if o.Help == "" {
			t.Errorf("%s%s has no help", o.Key, o.Flag)
		}
	}
}

func TestDefaultsAreAccepted(t *testing.T) {
	s := DefaultSettings("/conf")
	for _, o := range Options(s) {
		v, ok := o.Value.(setting.Scalar)
		if !ok || o.Value.String() == "" {
			continue
		}
		before := o.Value.String()
		if err := v.Set(before, ""); err != nil || o.Value.String() != before {
			t.Errorf("%s: the default %q is read as %q, %v", o.Key, before, o.Value, err)
		}
	}
}

func TestRelativePaths(t *testing.T) {
	p, file := configured(t, "policy: {dir: p}\nidentity: {keys_file: ../k.yaml}\nrecord: r\n")
	s, err := load(t, p, "--record", "here", "--workspace", ".")
	check(t, err)
	here, err := os.Getwd()
	check(t, err)
	dir := filepath.Dir(file)
	for what, got := range map[string][2]string{
		"policy.dir, of the file":         {s.Policy.Dir, filepath.Join(dir, "p")},
		"identity.keys_file, of the file": {s.Identity.KeysFile, filepath.Join(filepath.Dir(dir), "k.yaml")},
		"--record, of the process":        {s.Record, filepath.Join(here, "here")},
		"--workspace, of the process":     {s.Session.Workspace, here},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", what, got[0], got[1])
		}
	}
}

func TestConfigFile(t *testing.T) {
	t.Run("none, and nowhere to look", func(t *testing.T) {
		s, err := load(t, cli.Process{})
		if err != nil || s.File != "" || s.Identity.KeysFile != "" {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("the directory is a file", func(t *testing.T) {
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, "attache"), nil, 0o600))
		if _, err := load(t, cli.Process{ConfigDir: dir}); err != nil {
			t.Error(err)
		}
	})
	t.Run("flag before variable", func(t *testing.T) {
		_, file := configured(t, "log: {level: debug}")
		s, err := load(t, cli.Process{Env: []string{"ATTACHE_CONFIG=/no/such"}}, "--config", file)
		if err != nil || s.Log.Level != "debug" || s.File != file {
			t.Errorf("%v, %v", s.Log, err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		p, _ := configured(t, strings.Repeat("#\n", maxConfigFile))
		wantProblem(t, p, "config.yaml: cannot be read: is too large: it has more than 256 KiB: name another file with --config")
	})
	t.Run("never in the working directory", func(t *testing.T) {
		_, file := configured(t, "log: {level: debug}")
		t.Chdir(filepath.Dir(filepath.Dir(file)))
		s, err := load(t, cli.Process{})
		if err != nil || s.File != "" {
			t.Errorf("%q was read, %v", s.File, err)
		}
	})
}

// wantProblem checks that loading reports one problem, which contains want.
func wantProblem(t *testing.T, p cli.Process, want string, args ...string) {
	t.Helper()
	_, err := load(t, p, args...)
	var problems setting.Problems
	if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAPIKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), mode))
		check(t, os.Chmod(path, mode))
		return path
	}
	good := write("good", "atk_1_file\n", 0o600)
	tests := map[string]struct {
		env  []string
		args []string
		key  string
		err  string
	}{
		"none":                 {},
		"variable":             {env: []string{"ATTACHE_API_KEY= atk_1_env "}, key: "atk_1_env"},
		"file":                 {args: []string{"--api-key-file", good}, key: "atk_1_file"},
		"flag before variable": {env: []string{"ATTACHE_API_KEY=atk_1_env"}, args: []string{"--api-key-file", good}, key: "atk_1_file"},
		"key before its file":  {env: []string{"ATTACHE_API_KEY=atk_1_env", "ATTACHE_API_KEY_FILE=" + good}, key: "atk_1_env"},
		"missing":              {args: []string{"--api-key-file", filepath.Join(dir, "none")}, err: "there is no such file: correct the path"},
		"empty":                {args: []string{"--api-key-file", write("empty", "\n", 0o600)}, err: "has 0 words in it: write the key, and nothing else, in it"},
		"two words":            {args: []string{"--api-key-file", write("two", "secret word", 0o600)}, err: "has 2 words in it"},
		"too open":             {args: []string{"--api-key-file", write("open", "secret", 0o644)}, err: "(mode 0644): run chmod 600"},
		"too large":            {args: []string{"--api-key-file", write("large", strings.Repeat("secret", 1000), 0o600)}, err: "too large"},
		"directory":            {args: []string{"--api-key-file", dir}, err: "is a directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := cli.Process{Env: test.env}
			s, err := load(t, p, test.args...)
			check(t, err)
			key, _, err := APIKey(p, s)
			if key.Reveal() != test.key {
				t.Errorf("key %q, want %q", key.Reveal(), test.key)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the key is in the error: %v", err)
			}
		})
	}
}

var check = testkit.Check
