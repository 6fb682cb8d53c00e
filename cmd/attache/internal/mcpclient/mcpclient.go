// Package mcpclient lists the MCP clients that attache knows, the files in which they keep their servers
// on each system, and where in a file the servers are. It lists directories, and reads no file.
package mcpclient

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Client is a program that starts the MCP servers in its configuration file.
type Client struct {
	// Name is the name on a command line, such as "claude-desktop".
	Name string
	// Title is the product name.
	Title string
	// Reread is a sentence that says how to make it read its configuration again.
	Reread string

	user     func(System) []string // absolute paths
	project  []string              // paths relative to a project, with slashes
	sections []Section
}

// A Section is the path from the top of a file to an object that holds servers. The element "*"
// matches any name. The last element can be Typed: then members without a "type" are not servers.
type Section []string

// Typed is the last element of a section that is typed.
const Typed = "?"

// All returns the supported clients, sorted by name.
//
// Sources: the documentation of each client's configuration, and crates/paths/src/paths.rs for Zed.
// The packaged Claude Desktop for Windows reads a different file than its "Edit Config" button opens
// (anthropics/claude-code issue 26073).
func All() []Client {
	servers := []Section{{"mcpServers"}}
	return []Client{
		{
			Name: "claude-code", Title: "Claude Code", Reread: "Start a new session of Claude Code.",
			user:     inHome("CLAUDE_CONFIG_DIR", "", ".claude.json"),
			project:  []string{".mcp.json"},
			sections: []Section{{"mcpServers"}, {"projects", "*", "mcpServers"}},
		},
		{
			Name: "claude-desktop", Title: "Claude Desktop", Reread: "Quit Claude Desktop and start it again.",
			user: claudeDesktop, sections: servers,
		},
		{
			Name: "codex", Title: "Codex CLI", Reread: "Start Codex again.",
			user:     inHome("CODEX_HOME", ".codex", "config.toml"),
			project:  []string{".codex/config.toml"},
			sections: []Section{{"mcp_servers"}},
		},
		{
			Name: "copilot", Title: "GitHub Copilot CLI", Reread: "Start Copilot CLI again.",
			user:    inHome("COPILOT_HOME", ".copilot", "mcp-config.json"),
			project: []string{".github/mcp.json"}, sections: servers, // and .mcp.json, as Claude Code
		},
		{
			Name: "cursor", Title: "Cursor", Reread: "Reload the servers in Cursor's settings, or restart Cursor.",
			user:    func(s System) []string { return []string{s.join(s.Home, ".cursor", "mcp.json")} },
			project: []string{".cursor/mcp.json"}, sections: servers,
		},
		{
			Name: "gemini", Title: "Gemini CLI", Reread: "Start Gemini CLI again.",
			// GEMINI_CLI_HOME replaces the home directory, and not the directory .gemini in it.
			user: func(s System) []string {
				return []string{s.join(cmp.Or(s.Getenv("GEMINI_CLI_HOME"), s.Home), ".gemini", "settings.json")}
			},
			project: []string{".gemini/settings.json"}, sections: servers,
		},
		openCode("kilo", "Kilo CLI"), openCode("opencode", "opencode"),
		{
			Name: "qwen", Title: "Qwen Code", Reread: "Start Qwen Code again.",
			user:    inHome("QWEN_HOME", ".qwen", "settings.json"),
			project: []string{".qwen/settings.json"}, sections: servers,
		},
		{
			Name: "vscode", Title: "VS Code", Reread: "Restart the servers in VS Code by \"MCP: List Servers\".",
			user: vscode, project: []string{".vscode/mcp.json"},
			sections: []Section{{"servers"}, {"mcp", "servers"}},
		},
		{
			Name: "windsurf", Title: "Windsurf", Reread: "Refresh the servers in Windsurf's Cascade panel.",
			user:     func(s System) []string { return []string{s.join(s.Home, ".codeium", "windsurf", "mcp_config.json")} },
			sections: servers,
		},
		{
			Name: "zed", Title: "Zed", Reread: "Zed restarts the servers by itself.",
			user: zed, project: []string{".zed/settings.json"},
			sections: []Section{{"context_servers"}},
		},
	}
}

// inHome returns the path of a file in the directory that a variable names. Without the variable, it
// is the path in a directory of the user's home.
func inHome(variable, dir, file string) func(System) []string {
	return func(s System) []string {
		return []string{s.join(cmp.Or(s.Getenv(variable), s.join(s.Home, dir)), file)}
	}
}

// openCode returns opencode or a client made from it. The user's files are in ~/.config on all systems.
// The sections are those of versions 1 and 2 of its configuration.
func openCode(name, title string) Client {
	files := []string{name + ".json", name + ".jsonc"}
	return Client{
		Name: name, Title: title, Reread: "Start " + title + " again.",
		user: func(s System) []string {
			dir := s.join(cmp.Or(s.Getenv("XDG_CONFIG_HOME"), s.join(s.Home, ".config")), name)
			return []string{s.join(dir, files[0]), s.join(dir, files[1])}
		},
		project:  append(files, "."+name+"/"+files[0], "."+name+"/"+files[1]),
		sections: []Section{{"mcp", Typed}, {"mcp", "servers"}},
	}
}

// A System describes the machine on which to find the files.
type System struct {
	OS     string // a value of runtime.GOOS
	Home   string // the user's home directory
	Getenv func(name string) string
	// ReadDir returns the names in a directory, or none if it cannot be read.
	ReadDir func(path string) []string
}

// A File is a configuration file of a client. It need not exist.
type File struct {
	Client *Client // nil: unknown, so the sections of all clients are read
	Path   string
}

// IsTOML reports whether the file is TOML, and not JSON.
func (f File) IsTOML() bool { return strings.EqualFold(filepath.Ext(f.Path), ".toml") }

// Sections returns the sections of f's client, or those of all clients and of Amp if it has none.
func (f File) Sections() []Section {
	if f.Client != nil {
		return f.Client.sections
	}
	all := []Section{{"amp.mcpServers"}}
	for _, c := range All() {
		for _, s := range c.sections {
			if !slices.ContainsFunc(all, func(o Section) bool { return slices.Equal(o, s) }) {
				all = append(all, s)
			}
		}
	}
	return all
}

// UserFiles returns the files in which c keeps the user's servers.
func (s System) UserFiles(c *Client) []File {
	var files []File
	for _, path := range c.user(s) {
		files = append(files, File{Client: c, Path: path})
	}
	return files
}

// ProjectFiles returns the files in which c keeps the servers of the project in dir.
func (s System) ProjectFiles(c *Client, dir string) []File {
	var files []File
	for _, path := range c.project {
		files = append(files, File{Client: c, Path: s.join(dir, strings.Split(path, "/")...)})
	}
	return files
}

// Files returns the files of all clients: the user's if the home directory is known, and those of
// the project in dir unless dir is empty. No file occurs twice.
func (s System) Files(dir string) []File {
	var all []File
	for _, c := range All() {
		var files []File
		if s.Home != "" {
			files = s.UserFiles(&c)
		}
		if dir != "" {
			files = append(files, s.ProjectFiles(&c, dir)...)
		}
		for _, f := range files { // in the home directory, a project's file can be the user's
			if !slices.ContainsFunc(all, func(o File) bool { return filepath.Clean(o.Path) == filepath.Clean(f.Path) }) {
				all = append(all, f)
			}
		}
	}
	return all
}

// Shared reports whether path is a project's file, which other people also use on other machines,
// and not the user's own file.
func (s System) Shared(path string) bool {
	slashed := strings.ReplaceAll(path, `\`, "/")
	shared := false
	for _, c := range All() {
		if slices.ContainsFunc(s.UserFiles(&c), func(f File) bool { return f.Path == path }) {
			return false
		}
		for _, name := range c.project {
			shared = shared || slashed == name || strings.HasSuffix(slashed, "/"+name)
		}
	}
	return shared
}

func claudeDesktop(s System) []string {
	const file = "claude_desktop_config.json"
	paths := []string{s.join(s.config(), "Claude", file)}
	if s.OS == "windows" {
		local := cmp.Or(s.Getenv("LOCALAPPDATA"), s.join(s.Home, "AppData", "Local"))
		packages := s.join(local, "Packages")
		paths = append(paths, s.each(packages, "Claude_", "LocalCache", "Roaming", "Claude", file)...)
	}
	return paths
}

// vscode returns a file for each profile, and the settings files, in which older versions keep
// servers.
func vscode(s System) []string {
	var paths []string
	for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
		user := s.join(s.config(), edition, "User")
		paths = append(paths, s.join(user, "mcp.json"), s.join(user, "settings.json"))
		paths = append(paths, s.each(s.join(user, "profiles"), "", "mcp.json")...)
	}
	return paths
}

// zed returns Zed's settings file, which is in ~/.config on macOS too.
func zed(s System) []string {
	if s.OS == "darwin" {
		return []string{s.join(s.Home, ".config", "zed", "settings.json")}
	}
	name := "zed"
	if s.OS == "windows" {
		name = "Zed"
	}
	return []string{s.join(s.config(), name, "settings.json")}
}

// config returns the directory for the configuration files of the user's applications.
func (s System) config() string {
	switch s.OS {
	case "windows":
		return cmp.Or(s.Getenv("APPDATA"), s.join(s.Home, "AppData", "Roaming"))
	case "darwin":
		return s.join(s.Home, "Library", "Application Support")
	}
	return cmp.Or(s.Getenv("XDG_CONFIG_HOME"), s.join(s.Home, ".config"))
}

// join joins a path for s.OS. Package filepath supports only the system that it was compiled for,
// so tests could not cover the others.
func (s System) join(dir string, names ...string) string {
	separator := "/"
	if s.OS == "windows" {
		separator = `\`
	}
	return strings.Join(append([]string{strings.TrimRight(dir, separator)}, names...), separator)
}

// each returns the path names below every directory in dir whose name has the given prefix.
func (s System) each(dir, prefix string, names ...string) []string {
	var paths []string
	for _, name := range s.ReadDir(dir) {
		if strings.HasPrefix(name, prefix) {
			paths = append(paths, s.join(s.join(dir, name), names...))
		}
	}
	return paths
}

func readDir(path string) []string {
	entries, _ := os.ReadDir(path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ThisSystem returns the current machine, with the given environment.
func ThisSystem(getenv func(string) string) System {
	return System{OS: runtime.GOOS, Home: getenv(HomeVariable()), Getenv: getenv, ReadDir: readDir}
}

// HomeVariable returns the name of the variable that [os.UserHomeDir] reads.
func HomeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}
