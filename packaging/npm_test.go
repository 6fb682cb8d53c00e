package packaging

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// standInVariable makes the test binary act as attache.
const standInVariable = "ATTACHE_TEST_PRETEND"

func TestMain(m *testing.M) {
	if os.Getenv(standInVariable) != "" {
		os.Exit(standIn())
	}
	os.Exit(m.Run())
}

// standIn acts as the attache that the launcher starts in these tests. Its first argument selects what it
// does, and the result is its exit status.
func standIn() int {
	switch os.Args[1] {
	case "echo": // prints its arguments and its input
		fmt.Printf("%q\n", os.Args[2:])
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Fprintln(os.Stderr, "to stderr")
		return 37
	case "pid":
		fmt.Println(os.Getpid())
	case "signal": // prints the signal that it receives
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
		fmt.Println("ready")
		fmt.Println(<-signals)
		return 38
	case "die": // kills itself
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		fmt.Fprintln(os.Stderr, err)
		select {}
	}
	return 0
}

// node returns the path of Node. The packages need it, so without it the tests are skipped.
func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	return path
}

// release makes a release of the given targets and returns its directories. The binary for this system is the
// test binary.
func release(t *testing.T, targets []target) (dist, build string) {
	t.Helper()
	dist, build = t.TempDir(), t.TempDir()
	self, err := os.Executable()
	check(t, err)
	foreign := filepath.Join(build, "foreign")
	artifacts := []map[string]string{{"type": "Archive", "goos": "linux", "goarch": "amd64", "path": "attache.tar.gz"}}
	for _, to := range targets {
		binary := foreign
		if to == (target{runtime.GOOS, runtime.GOARCH}) {
			binary = self
		}
		artifacts = append(artifacts, map[string]string{"type": "Binary", "goos": to.goos, "goarch": to.goarch, "path": binary})
	}
	for file, content := range map[string]any{
		filepath.Join(dist, "metadata.json"):  map[string]string{"version": "1.2.3-rc.1"},
		filepath.Join(dist, "artifacts.json"): artifacts,
		filepath.Join(build, "NOTICES.txt"):   "licences",
		foreign:                               "for another system",
	} {
		data, err := json.Marshal(content)
		check(t, err)
		check(t, os.WriteFile(file, data, 0o600))
	}
	return dist, build
}

// assemble makes the npm packages of a release, and returns their directory and the names that it prints, in
// their order.
func assemble(t *testing.T, targets []target) (out string, dirs []string, err error) {
	t.Helper()
	dist, build := release(t, targets)
	out = filepath.Join(t.TempDir(), "npm")
	stdout, err := exec.Command(node(t), "npm/assemble.mjs", dist, build, out).Output()
	return out, strings.Fields(string(stdout)), err
}

// All packages of a release have its version, and the launcher depends on exactly that version. It is printed
// last, because a package is published after its dependencies.
func TestAssemble(t *testing.T) {
	targets := readReleaser(t).targets()
	out, dirs, err := assemble(t, targets)
	check(t, err)
	if want := filepath.Join(out, "attache-mcp"); len(dirs) != len(targets)+1 || dirs[len(dirs)-1] != want {
		t.Fatalf("made %q, want %d directories, the last %s", dirs, len(targets)+1, want)
	}
	wanted := describe(t, filepath.Join(out, "attache-mcp", "package.json")).OptionalDependencies
	for _, dir := range dirs {
		d := describe(t, filepath.Join(dir, "package.json"))
		if d.Version != "1.2.3-rc.1" || len(d.Scripts) > 0 {
			t.Errorf("%s has version %q and runs %v", d.Name, d.Version, d.Scripts)
		}
		if d.Name == "attache-mcp" {
			continue
		}
		if wanted[d.Name] != d.Version {
			t.Errorf("attache-mcp asks for %s in version %q", d.Name, wanted[d.Name])
		}
		if name := "@attache-mcp/" + d.OS[0] + "-" + d.CPU[0]; d.Name != name || len(d.OS)+len(d.CPU) != 2 {
			t.Errorf("%s is for %v and %v", d.Name, d.OS, d.CPU)
		}
		program := "attache"
		if d.OS[0] == "win32" {
			program += ".exe"
		}
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", d.Name, info, err)
		}
		for _, file := range []string{"LICENSE", "NOTICES.txt"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
				t.Error(err)
			}
		}
	}
}

// A release without a binary for a target, or with two, makes no packages.
func TestAssembleRefuses(t *testing.T) {
	all := readReleaser(t).targets()
	for name, targets := range map[string][]target{
		"one is missing": all[1:],
		"one is twice":   append([]target{all[0]}, all...),
	} {
		_, _, err := assemble(t, targets)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(string(exit.Stderr), "not one") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// installed returns the launcher as npm installs it, with the packages for this system.
func installed(t *testing.T) string {
	t.Helper()
	out, _, err := assemble(t, readReleaser(t).targets())
	check(t, err)
	modules := filepath.Join(t.TempDir(), "node_modules")
	name := npmName(target{runtime.GOOS, runtime.GOARCH})
	for from, to := range map[string]string{"attache-mcp": "attache-mcp", filepath.Base(name): name} {
		check(t, os.CopyFS(filepath.Join(modules, to), os.DirFS(filepath.Join(out, from))))
	}
	return filepath.Join(modules, "attache-mcp", "attache.js")
}

// eachWay runs a test with a launcher that replaces itself, if this Node can, and with one that runs attache
// as a child. command returns a command that runs the launcher.
func eachWay(t *testing.T, test func(t *testing.T, replaces bool, command func(args ...string) *exec.Cmd)) {
	launcher := installed(t)
	without := filepath.Join(t.TempDir(), "without.cjs")
	check(t, os.WriteFile(without, []byte("process.execve = undefined"), 0o600))
	with := func(options ...string) func(args ...string) *exec.Cmd {
		return func(args ...string) *exec.Cmd {
			cmd := exec.Command(node(t), slices.Concat(options, []string{launcher}, args)...)
			cmd.Env = append(os.Environ(), standInVariable+"=yes")
			return cmd
		}
	}
	can, err := exec.Command(node(t), "--print", "typeof process.execve").Output()
	check(t, err)
	if strings.TrimSpace(string(can)) == "function" && runtime.GOOS != "windows" {
		t.Run("replaced", func(t *testing.T) { test(t, true, with()) })
	}
	t.Run("parent", func(t *testing.T) { test(t, false, with("--require", without)) })
}

// The launcher passes arguments, stdin, output and exit status between its caller and attache, and adds
// nothing.
func TestLauncherIsTransparent(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool, command func(...string) *exec.Cmd) {
		cmd := command("echo", "--workspace", "a b", "--", "npx", "-y", "--version", "", "ü\n*")
		var stdout, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("a line\nno line end"), &stdout, &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 37 {
			t.Errorf("ended with %v, want status 37", err)
		}
		const want = `["--workspace" "a b" "--" "npx" "-y" "--version" "" "ü\n*"]` + "\na line\nno line end"
		if stdout.String() != want || stderr.String() != "to stderr\n" {
			t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
		}
	})
}

func TestLauncherReplacesItself(t *testing.T) {
	eachWay(t, func(t *testing.T, replaces bool, command func(...string) *exec.Cmd) {
		cmd := command("pid")
		out, err := cmd.Output()
		check(t, err)
		if is := strings.TrimSpace(string(out)) == fmt.Sprint(cmd.Process.Pid); is != replaces {
			t.Errorf("attache is the process that was started: %v, want %v", is, replaces)
		}
	})
}

func TestLauncherPassesSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to pass")
	}
	eachWay(t, func(t *testing.T, _ bool, command func(...string) *exec.Cmd) {
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
			cmd := command("signal")
			stdout, err := cmd.StdoutPipe()
			check(t, err)
			check(t, cmd.Start())
			lines := bufio.NewScanner(stdout)
			if lines.Scan(); lines.Text() != "ready" {
				t.Fatalf("it began with %q", lines.Text())
			}
			check(t, cmd.Process.Signal(sig))
			if lines.Scan(); lines.Text() != sig.String() {
				t.Errorf("%v came as %q", sig, lines.Text())
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 38 {
				t.Errorf("%v: status %d, want that of attache, 38", sig, got)
			}
		}
	})
}

// If attache is killed, the parent of the launcher sees the same signal.
func TestLauncherDiesAsAttacheDid(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to die of")
	}
	eachWay(t, func(t *testing.T, _ bool, command func(...string) *exec.Cmd) {
		cmd := command("die")
		_ = cmd.Run()
		if got := cmd.ProcessState.String(); got != "signal: killed" {
			t.Errorf("the launcher ended with %s", got)
		}
	})
}

// Without the package of this system the launcher prints what to do, only on stderr.
func TestLauncherWithoutBinary(t *testing.T) {
	for _, test := range []struct{ name, node, want string }{
		{"left out", "0", "--omit=optional"},
		{"unknown system", "Object.defineProperty(process, 'platform', {value: 'plan9'})", "there is no attache for plan9-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			preload := filepath.Join(t.TempDir(), "preload.cjs")
			check(t, os.WriteFile(preload, []byte(test.node), 0o600))
			cmd := exec.Command(node(t), "--require", preload, "npm/attache-mcp/attache.js", "--", "x")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("ended with %v, want status 1", err)
			}
			if stdout.Len() > 0 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}
