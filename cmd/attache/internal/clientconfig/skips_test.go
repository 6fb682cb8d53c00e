package clientconfig

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

func wrap(d *Document) *Plan { return d.Wrap(Launch{Command: "attache"}, all) }

func unwrap(d *Document) *Plan { return d.Unwrap(Launch{}, all) }

// requireSkipped checks that a plan for a file with one server changes nothing. The plan's reason must begin with want.
func requireSkipped(t *testing.T, path, config, want string, plan func(*Document) *Plan) {
	t.Helper()
	p := plan(mustRead(t, mcpclient.File{Path: path}, []byte(config)))
	if len(p.Steps) != 1 || p.Steps[0].Done || !strings.HasPrefix(p.Steps[0].Text, want) || string(p.Content) != config {
		t.Errorf("%s: %+v\n%s", config, p.Steps, p.Content)
	}
}

// Values of TOML that no client can use are not wrapped.
func TestWrapSkipsOddTOML(t *testing.T) {
	requireSkipped(t, "config.toml", "mcp_servers.s = 1\n", "it is not a table", wrap)
	requireSkipped(t, "config.toml", "[mcp_servers.s]\ncommand = 1\n", "its command is not a text", wrap)
}

// Remote servers in TOML are not wrapped if the file could not be restored, or if the client would lose a login.
func TestWrapSkipsTOML(t *testing.T) {
	for entry, want := range map[string]string{
		`env = {A = "b"}`:                 "it is remote and has variables",
		`env_vars = ["A"]`:                "it is remote and has variables",
		`args = ["a"]`:                    "it is remote and has args",
		`bearer_token_env_var = ["A"]`:    "it is remote, and its bearer_token_env_var is not a text",
		`scopes = ["a"]`:                  "it is remote, and the client logs in to it",
		`oauth_resource = "a"`:            "it is remote, and the client logs in to it",
		`auth = "a"`:                      "it is remote, and the client logs in to it",
		`http_headers = {}`:               "it is remote, and its table of headers is empty",
		`env_http_headers = {}`:           "it is remote, and its table of headers is empty",
		`http_headers = {A = 1}`:          "it is remote, and its headers are not all texts",
		`http_headers = {"\u0041" = "1"}`: "it is remote, and its headers are not all texts",
		`httpUrl = "https://y"`:           "it is remote, and its headers are not all texts",
		`http_headers = {Host = "a"}`:     "it is remote, and it sets a header that attache sets itself",
		"http_headers = {A = \"1\"}\n" + `env_http_headers = {B = "V"}`:           "it is remote, with http_headers and env_http_headers",
		"bearer_token_env_var = \"T\"\n" + `http_headers = {authorization = "a"}`: "it is remote, and the name of a header cannot become",
	} {
		requireSkipped(t, "config.toml", "[mcp_servers.s]\nurl = \"https://x\"\n"+entry+"\n", want, wrap)
	}
}

// Unwrap changes no TOML entry of a remote server that was edited in a way which it cannot take back.
func TestUnwrapSkipsTOML(t *testing.T) {
	for entry, want := range map[string]string{
		"args = [\"--\", \"https://x\", \"y\"]":                                              "it was edited since attache wrote it",
		"args = [\"--\", \"https://x\"]\nenv = {A = \"b\"}":                                  "its env has variables that are not headers",
		"args = [\"--\", \"https://x\"]\nenv = {}":                                           "its env is not as attache wrote it",
		"args = [\"--bearer-env\", \"T\", \"--\", \"https://x\"]":                            "its env_vars do not have the variable",
		"args = [\"--bearer-env\", \"T\", \"--\", \"https://x\"]\nenv_vars = [\"T\", \"U\"]": "its env_vars were edited",
	} {
		requireSkipped(t, "config.toml", "[mcp_servers.s]\ncommand = \"attache\"\n"+entry+"\n", want, unwrap)
	}
}

// An entry that starts another program in the way in which attache is started is not wrapped.
func TestOtherProgramOfTheSameLauncher(t *testing.T) {
	launch := Launch{Command: "run", Args: []string{"-y", "own-build"}}
	for args, wrapped := range map[string]bool{
		`"-y", "own-build", "--", "npx", "x"`:                      true,
		`"-y", "own-build", "--trust", "direct", "--", "npx", "x"`: true,
		`"-y", "other", "--", "npx", "x"`:                          false,
		`"-y", "--", "npx", "x"`:                                   false,
	} {
		config := `{"mcpServers": {"s": {"command": "run", "args": [` + args + `]}}}`
		d := mustRead(t, mcpclient.File{Path: "x.json"}, []byte(config))
		plan := d.Unwrap(launch, all)
		if step := plan.Steps[0]; step.Done != wrapped || (string(plan.Content) == config) == wrapped {
			t.Errorf("%s: %+v, %s", args, step, plan.Content)
		}
	}
}

// A file that is not UTF-8 is not read: clients replace the broken bytes when they write it again.
func TestReadRefusesBrokenUTF8(t *testing.T) {
	for path, text := range map[string]string{
		"x.json": "{\"mcpServers\": {\"s\": {\"command\": \"\xff\"}}}", "x.toml": "# \xff\n[mcp_servers.s]\ncommand = \"x\"\n",
	} {
		if _, err := Read(mcpclient.File{Path: path}, []byte(text)); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
