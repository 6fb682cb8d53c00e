package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attache-mcp/attache/cmd/attache/internal/login/logintest"
	"github.com/attache-mcp/attache/internal/testkit"
)

func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // or each process stays a second longer, with -race
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
	// Most tests wait for processes they started.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil { // -parallel wins
		panic(err)
	}
	testscript.Main(m, map[string]func(){"attache": main, "argserver": argServer, "envserver": envServer, "echoserver": echoProgram, "steps": stepsProgram, "doctorserver": doctorServer, "teamsagent": teamsAgent, "fakebrowser": fakeBrowser})
}

// argServer is a program for scripts: it writes its arguments to args.txt, quoted, one a line, reads stdin to
// its end, and exits with status 3.
func argServer() {
	var all strings.Builder
	for _, arg := range os.Args[1:] {
		fmt.Fprintf(&all, "%q\n", arg)
	}
	if err := os.WriteFile("args.txt", []byte(all.String()), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

// TestScripts runs the program with the scripts of testdata/script.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		// Where the user's configuration is looked for, on every system the same.
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/.config")
			e.Setenv("HOME", e.WorkDir)
			e.Values[collectorKey{}] = &collectors{}
			e.Values[oauthKey{}] = map[string]*logintest.Server{}
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": wantStatus, "startentry": startEntry, "mint": mint, "issuer": issuer, "collector": collector, "remoteserver": remoteServer, "oauthserver": oauthServer, "oauth": oauthCommand},
	})
}

var check = testkit.Check
