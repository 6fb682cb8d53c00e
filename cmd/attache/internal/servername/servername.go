// Package servername derives the name of a server from the command that starts it.
package servername

import (
	"cmp"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Of returns the name of a server, for rules and the audit, if no name is configured. It is the host of
// a remote server, or else the name, without the version, of the package or image that the command
// downloads and runs, or else the base name of the command. It depends only on the command, so that a
// rule means the same at each start. If it is not certain which argument is the package, the name is
// that of the command, because the argument may be a secret.
func Of(command []string) string {
	if len(command) == 0 {
		return ""
	}
	if address := Address(command); address != "" {
		u, err := url.Parse(address)
		if err != nil {
			return ""
		}
		return u.Hostname()
	}
	return cmp.Or(Package(command), Program(underCmd(command)[0]))
}

// bridge is the npm package through which clients that can only start servers use remote servers.
const bridge = "mcp-remote"

// Address returns the address of the remote server that a command names, which is an address itself or
// runs mcp-remote; "" if it names none.
func Address(command []string) string {
	if strings.Contains(command[0], "://") {
		return command[0]
	}
	if command = underCmd(command); Package(command) != bridge && Program(command[0]) != bridge {
		return ""
	}
	at := slices.IndexFunc(command, func(arg string) bool {
		name, _, _ := strings.Cut(Program(arg), "@")
		return name == bridge || installedPackage(arg) == bridge
	})
	for _, arg := range command[at+1:] {
		if strings.HasPrefix(arg, "https://") || strings.HasPrefix(arg, "http://") {
			return arg
		}
	}
	return ""
}

// underCmd returns the command that cmd /c runs, because clients on Windows start npx so. It returns
// any other command unchanged.
func underCmd(command []string) []string {
	if Program(command[0]) == "cmd" && len(command) > 2 && strings.EqualFold(command[1], "/c") {
		return underCmd(command[2:])
	}
	return command
}

// Package returns the name of the package or image that a command downloads and runs, or of the
// installed npm package that it runs, without the version; "" if it runs none. A package at an address
// has the name of the program in it that is run.
func Package(command []string) string {
	name, _ := packageOf(command)
	return name
}

// NamesPackage reports whether a command names its package: then Package does not return the name of a program.
func NamesPackage(command []string) bool {
	name, program := packageOf(command)
	return name != "" && !program
}

// packageOf returns the name that Package returns. program reports whether it is that of a program in a package at
// an address.
func packageOf(command []string) (name string, program bool) {
	command = underCmd(command)
	runs := Program(command[0])
	file := command[0]
	if runs == "node" || runs == "bun" {
		file = script(command[1:])
	}
	if name = installedPackage(file); name != "" {
		return name, false
	}
	for _, r := range runners() {
		if rest, ok := r.begins(runs, command[1:]); ok {
			if name, program = r.packageIn(rest); name != "" {
				return name, program
			}
		}
	}
	return "", false
}

// nodeFlags are flags without a value that do not change which file Node runs.
var nodeFlags = strings.Fields(`--no-warnings --no-deprecation --enable-source-maps --experimental-strip-types
	--experimental-transform-types --preserve-symlinks --trace-warnings --trace-deprecation --use-system-ca`)

// script returns the file that Node runs, "" if it is not certain which argument that is.
func script(args []string) string {
	for _, arg := range args {
		flag, _, joined := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(arg, "-"):
			return arg
		case flag == "--eval" || flag == "--print" || !joined && !slices.Contains(nodeFlags, flag):
			return ""
		}
	}
	return ""
}

// installedPackage returns the npm package that contains the file at path, "" if none does.
func installedPackage(path string) string {
	path = "/" + strings.ReplaceAll(path, `\`, "/") // it may be relative
	const modules = "/node_modules/"
	at := strings.LastIndex(path, modules)
	if at < 0 {
		return ""
	}
	inside := path[at+len(modules):]
	parts := strings.SplitN(inside, "/", 3)
	switch {
	case strings.HasPrefix(inside, ".") || strings.Contains(inside, "//"):
	case strings.HasPrefix(inside, "@") && len(parts) == 3:
		return parts[0] + "/" + parts[1]
	case !strings.HasPrefix(inside, "@") && len(parts) > 1:
		return parts[0]
	}
	return ""
}

// Program returns the base name of a command. It accepts Windows paths too. The extension may have capital
// letters, because programs that search PATH on Windows take it from PATHEXT, as in uv.EXE.
func Program(path string) string {
	path = path[strings.LastIndexAny(path, `/\`)+1:]
	if ext := filepath.Ext(path); strings.EqualFold(ext, ".exe") || strings.EqualFold(ext, ".cmd") {
		path = strings.TrimSuffix(path, ext)
	}
	return path
}

// A runner is a program that downloads and runs another.
type runner struct {
	programs []string // its names
	verbs    string   // the words after the program, such as "tool run"
	from     []string // flags whose value is the package; the program in it that is run follows
	values   []string // flags with another value
	bare     []string // flags without a value
	// others reports that all flags not listed here have a value; otherwise nothing
	// is known about them.
	others  bool
	flagged bool   // the package is always the value of a flag
	form    string // a regular expression for the package; its first group is the name
}

// The forms of packages and images.
const (
	npmForm   = `^((?:@[\w.~-]+/)?[A-Za-z0-9][\w.~-]*)(?:@[\w.^~*-]+)?$`
	pypiForm  = `^([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?(?:(?:@|[=<>~!]=|[<>])[\w.*]+)?$`
	denoForm  = `^(?:npm|jsr):/?((?:@[\w.~-]+/)?[A-Za-z0-9][\w.~-]*)(?:@[\w.^~*-]+)?(?:/[\w./-]*)?$`
	imageForm = `^((?:[\w.-]+(?::\d+)?/)?[\w./-]+)(?::[\w.-]+)?(?:@sha256:[0-9a-f]+)?$`
)

// runners returns the known runners.
func runners() []runner {
	node := runner{
		from:   []string{"-p", "--package"},
		values: []string{"--registry", "--cache", "--prefix", "--userconfig", "--loglevel", "--node-options"},
		bare:   []string{"-y", "--yes", "-q", "--quiet", "--silent", "--no-install", "--ignore-existing", "--offline", "--prefer-offline", "--prefer-online", "--bun"},
		form:   npmForm,
	}
	python := runner{
		from:   []string{"--from", "--spec"},
		values: []string{"-p", "--python", "--with", "--index-url", "--extra-index-url", "--index", "--default-index", "--directory", "--cache-dir", "--prerelease", "--pip-args"},
		bare:   []string{"-q", "--quiet", "-v", "--verbose", "--isolated", "--offline", "--refresh", "--no-cache", "-n", "--no-config", "--no-progress", "--native-tls"},
		form:   pypiForm,
	}
	container := runner{
		bare: []string{"-i", "--interactive", "-t", "--tty", "-it", "-ti", "-d", "--detach", "-P", "--publish-all",
			"--rm", "--init", "--privileged", "--read-only", "--no-healthcheck", "--oom-kill-disable", "-q", "--quiet", "--sig-proxy",
			"--disable-content-trust", "--env-host", "--http-proxy", "--no-hosts", "--passwd", "--read-only-tmpfs", // of podman
			"--replace", "--rmi", "--rootfs", "--tls-verify", "--unsetenv-all"},
		others: true,
		form:   imageForm,
	}
	deno := runner{
		values: []string{"-c", "--config", "--import-map", "--cert"},
		bare: []string{"-A", "--allow-all", "-N", "--allow-net", "-R", "--allow-read", "-W", "--allow-write", "-E", "--allow-env",
			"-S", "--allow-sys", "--allow-run", "--allow-ffi", "-q", "--quiet", "-r", "--reload", "--no-prompt", "--no-lock", "--no-check", "--node-modules-dir"},
		form: denoForm,
	}
	module := runner{from: []string{"-m"}, bare: []string{"-u", "-I", "-E", "-s", "-B", "-O"}, form: pypiForm, flagged: true}
	return []runner{
		node.as("npx bunx pnpx", ""), node.as("npm", "exec"), node.as("npm", "x"), node.as("pnpm yarn", "dlx"), node.as("bun", "x"), deno.as("deno", "run"),
		python.as("uvx", ""), python.as("uv", "tool run"), python.as("pipx", "run"),
		container.as("docker podman nerdctl", "run"), container.as("docker podman", "container run"),
		module.as("python python3 py", ""),
	}
}

func (r runner) as(programs, verbs string) runner {
	r.programs, r.verbs = strings.Fields(programs), verbs
	return r
}

// begins returns the arguments after the runner's verbs. ok is false if the program is not this
// runner.
func (r *runner) begins(program string, args []string) (rest []string, ok bool) {
	if base, _, dotted := strings.Cut(program, "."); dotted && strings.HasPrefix(program, "python3.") {
		program = base
	}
	verbs := strings.Fields(r.verbs)
	if !slices.Contains(r.programs, program) || len(args) < len(verbs) || !slices.Equal(args[:len(verbs)], verbs) {
		return nil, false
	}
	return args[len(verbs):], true
}

// packageIn returns the name of the package in the arguments, "" if it is not certain which argument
// that is. program reports that the name is that of a program in a package at an address.
func (r *runner) packageIn(args []string) (name string, program bool) {
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		switch {
		case flag == "--" && i+1 < len(args):
			return r.name(args[i+1]), program
		case !strings.HasPrefix(flag, "-") && r.flagged:
			return "", false
		case !strings.HasPrefix(flag, "-"):
			return r.name(args[i]), program
		case slices.Contains(r.from, flag) && (joined || i+1 < len(args)):
			if !joined {
				i++
				value = args[i]
			}
			if name = r.name(value); name != "" || r.flagged {
				return name, false
			}
			program = true // it is an address or a path, such as git+https://host/repository
		case joined, slices.Contains(r.bare, flag), r.others && hasItsValue(flag):
		case r.others, slices.Contains(r.values, flag):
			i++
		default:
			return "", false
		}
	}
	return "", false
}

// hasItsValue reports whether the next argument is not the value of a container program's short
// flags in one word: they have none (-itd), or the word contains it (-p8080:80).
func hasItsValue(flag string) bool {
	return !strings.HasPrefix(flag, "--") && len(strings.TrimLeft(flag[1:], "itdPq")) != 1
}

// name returns the name of a package without its version, "" if text is not a package.
func (r *runner) name(text string) string {
	if m := regexp.MustCompile(r.form).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
