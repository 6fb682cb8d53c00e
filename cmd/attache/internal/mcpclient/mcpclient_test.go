package mcpclient

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUserFiles checks the paths of all systems, whatever system it runs on.
func TestUserFiles(t *testing.T) {
	windows := map[string]string{"APPDATA": `C:\Users\Ada L\AppData\Roaming`, "LOCALAPPDATA": `C:\Users\Ada L\AppData\Local`}
	dirs := map[string][]string{
		`C:\Users\Ada L\AppData\Local\Packages`:              {"Claude_pzs8sxrjxfjjc", "Microsoft.WindowsTerminal_8wekyb3d8bbwe"},
		"/home/ada/.config/Code/User/profiles":               {"-1b2c3d", "*"},
		`C:\Users\Ada L\AppData\Roaming\Code\User\profiles`:  {},
		"/Users/ada/Library/Application Support/Code/absent": {"x"},
	}
	tests := []struct {
		name, os, home string
		env            map[string]string
		want           map[string][]string
	}{
		{"linux", "linux", "/home/ada", nil, map[string][]string{
			"claude-code":    {"/home/ada/.claude.json"},
			"claude-desktop": {"/home/ada/.config/Claude/claude_desktop_config.json"},
			"codex":          {"/home/ada/.codex/config.toml"},
			"cursor":         {"/home/ada/.cursor/mcp.json"},
			"gemini":         {"/home/ada/.gemini/settings.json"},
			"vscode": {
				"/home/ada/.config/Code/User/mcp.json", "/home/ada/.config/Code/User/settings.json",
				"/home/ada/.config/Code/User/profiles/-1b2c3d/mcp.json", "/home/ada/.config/Code/User/profiles/*/mcp.json",
				"/home/ada/.config/Code - Insiders/User/mcp.json", "/home/ada/.config/Code - Insiders/User/settings.json",
				"/home/ada/.config/VSCodium/User/mcp.json", "/home/ada/.config/VSCodium/User/settings.json",
			},
			"windsurf": {"/home/ada/.codeium/windsurf/mcp_config.json"},
			"zed":      {"/home/ada/.config/zed/settings.json"},
		}},
		{"linux, moved", "linux", "/home/ada", map[string]string{
			"XDG_CONFIG_HOME": "/cfg/", "CLAUDE_CONFIG_DIR": "/claude", "CODEX_HOME": "/codex", "COPILOT_HOME": "/copilot", "GEMINI_CLI_HOME": "/gemini", "QWEN_HOME": "/qwen",
		}, map[string][]string{
			"claude-code":    {"/claude/.claude.json"},
			"claude-desktop": {"/cfg/Claude/claude_desktop_config.json"},
			"codex":          {"/codex/config.toml"},
			"copilot":        {"/copilot/mcp-config.json"},
			"gemini":         {"/gemini/.gemini/settings.json"},
			"qwen":           {"/qwen/settings.json"},
			"opencode":       {"/cfg/opencode/opencode.json", "/cfg/opencode/opencode.jsonc"},
			"zed":            {"/cfg/zed/settings.json"},
		}},
		{"macos", "darwin", "/Users/ada", map[string]string{"XDG_CONFIG_HOME": "/cfg"}, map[string][]string{
			"claude-code":    {"/Users/ada/.claude.json"},
			"claude-desktop": {"/Users/ada/Library/Application Support/Claude/claude_desktop_config.json"},
			"cursor":         {"/Users/ada/.cursor/mcp.json"},
			"kilo":           {"/cfg/kilo/kilo.json", "/cfg/kilo/kilo.jsonc"},
			"zed":            {"/Users/ada/.config/zed/settings.json"},
		}},
		{"windows", "windows", `C:\Users\Ada L`, windows, map[string][]string{
			"claude-code": {`C:\Users\Ada L\.claude.json`},
			"claude-desktop": {
				`C:\Users\Ada L\AppData\Roaming\Claude\claude_desktop_config.json`,
				`C:\Users\Ada L\AppData\Local\Packages\Claude_pzs8sxrjxfjjc\LocalCache\Roaming\Claude\claude_desktop_config.json`,
			},
			"codex":    {`C:\Users\Ada L\.codex\config.toml`},
			"copilot":  {`C:\Users\Ada L\.copilot\mcp-config.json`},
			"opencode": {`C:\Users\Ada L\.config\opencode\opencode.json`, `C:\Users\Ada L\.config\opencode\opencode.jsonc`},
			"qwen":     {`C:\Users\Ada L\.qwen\settings.json`},
			"windsurf": {`C:\Users\Ada L\.codeium\windsurf\mcp_config.json`},
			"zed":      {`C:\Users\Ada L\AppData\Roaming\Zed\settings.json`},
		}},
		{"windows, bare", "windows", `C:\Users\ada`, nil, map[string][]string{
			"claude-desktop": {`C:\Users\ada\AppData\Roaming\Claude\claude_desktop_config.json`},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := System{
				OS: test.os, Home: test.home,
				Getenv:  func(name string) string { return test.env[name] },
				ReadDir: func(path string) []string { return dirs[path] },
			}
			for _, c := range All() {
				want, ok := test.want[c.Name]
				if !ok {
					continue
				}
				var got []string
				for _, f := range s.UserFiles(&c) {
					got = append(got, f.Path)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", c.Name, diff)
				}
			}
		})
	}
}

func TestProjectFiles(t *testing.T) {
	var unix, windows []string
	for _, c := range All() {
		for _, f := range (System{OS: "linux"}).ProjectFiles(&c, "/src/app/") {
			unix = append(unix, f.Path)
		}
		for _, f := range (System{OS: "windows"}).ProjectFiles(&c, `D:\app`) {
			windows = append(windows, f.Path)
		}
	}
	want := []string{
		"/src/app/.mcp.json", "/src/app/.codex/config.toml", "/src/app/.github/mcp.json", "/src/app/.cursor/mcp.json",
		"/src/app/.gemini/settings.json", "/src/app/kilo.json", "/src/app/kilo.jsonc", "/src/app/.kilo/kilo.json", "/src/app/.kilo/kilo.jsonc",
		"/src/app/opencode.json", "/src/app/opencode.jsonc", "/src/app/.opencode/opencode.json", "/src/app/.opencode/opencode.jsonc",
		"/src/app/.qwen/settings.json", "/src/app/.vscode/mcp.json", "/src/app/.zed/settings.json",
	}
	if diff := cmp.Diff(want, unix); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(windows, `D:\app\.vscode\mcp.json`) {
		t.Errorf("%q", windows)
	}
}

// A file is listed once, even if it is the user's and also the project's.
func TestFiles(t *testing.T) {
	s := System{OS: "linux", Home: "/home/ada", Getenv: func(string) string { return "" }, ReadDir: func(string) []string { return nil }}
	paths := func(s System, dir string) (paths []string) {
		for _, f := range s.Files(dir) {
			paths = append(paths, f.Path)
		}
		return paths
	}
	user, both := paths(s, ""), paths(s, "/home/ada/")
	s.Home = ""
	project := paths(s, "/home/ada/")
	want := slices.Concat(user, project)
	slices.Sort(want)
	want = slices.Compact(want)
	if slices.Sort(both); !slices.Equal(both, want) || len(want) >= len(user)+len(project) {
		t.Errorf("got %q, want %q", both, want)
	}
	if slices.Contains(user, "/home/ada/.mcp.json") || slices.Contains(project, "/home/ada/.claude.json") || len(paths(s, "")) != 0 {
		t.Errorf("the files of the user are %q, those of the project %q", user, project)
	}
}

func TestShared(t *testing.T) {
	s := System{OS: "linux", Home: "/home/ada", Getenv: func(string) string { return "" }, ReadDir: func(string) []string { return nil }}
	for path, want := range map[string]bool{
		"/src/app/.mcp.json":          true,
		".mcp.json":                   true,
		"/src/app/.zed/settings.json": true,
		`D:\app\.vscode\mcp.json`:     true,
		"/src/app/my.mcp.json":        false,
		"/home/ada/.cursor/mcp.json":  false, // has the name of a project's file
		"/home/ada/.claude.json":      false,
	} {
		if got := s.Shared(path); got != want {
			t.Errorf("%s: got %t", path, got)
		}
	}
}
