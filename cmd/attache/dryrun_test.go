package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/record"
)

// TestDryRunChangesNothing plays all sessions of testdata/play and all recorded sessions as dry runs with
// their configurations: each line reaches the other side byte for byte, except for a credential, which is
// removed.
func TestDryRunChangesNothing(t *testing.T) {
	for _, s := range append(saidInScripts(t), saidInSessions(t)...) {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, s.dryRun)
		})
	}
}

// A transcript has the lines that the two peers of a session sent, in order, and the environment of the
// attache between them.
type transcript struct {
	name  string
	env   []string
	lines []transcriptLine
}

type transcriptLine struct {
	server bool
	raw    []byte
}

const askPrefix = "attache-0-"

func (s transcript) dryRun(t *testing.T) {
	p := cli.Process{Env: append(s.env, "HOME=/home/user", "ATTACHE_DRY_RUN=1"), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
	settings := attachetest.Load(t, p)
	o := assemble(t, settings, assembly.Options{Process: p}, assembly.ConnOptions{}).Relay()
	o.IDPrefix = askPrefix
	session := proxytest.Setup{Options: o}.Start(t)
	defer session.Exit(nil)
	for _, line := range s.lines {
		if slices.ContainsFunc(capture.CredentialKeys(), func(key string) bool { return bytes.Contains(line.raw, []byte(key)) }) {
			return
		}
		from, to := session.Client, session.Server
		if line.server {
			from, to = to, from
		}
		from.Write(string(line.raw))
		synctest.Wait()
		if got := next(to); !bytes.Equal(got, line.raw) {
			t.Fatalf("a line came out otherwise:\n%s", record.Diff(line.raw, got))
		}
	}
}

// next returns the next line that reaches p and is not from attache itself. It answers attache's own requests
// with an error, so that attache learns only what the script contains.
func next(p *proxytest.Peer) []byte {
	for {
		line := p.Next()
		id := regexp.MustCompile(`"id":("` + askPrefix + `\d+")`).FindSubmatch(line)
		switch {
		case id != nil:
			p.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id[1]))
		case !bytes.Contains(line, []byte(`"requestId":"`+askPrefix)):
			return line
		}
		synctest.Wait()
	}
}

// saidInScripts reads the lines sent in testdata/play, without the answers to attache's own requests.
func saidInScripts(t *testing.T) []transcript {
	sent := regexp.MustCompile(`^(client|server)-?>(?: (.*))$`)
	var all []transcript
	for _, file := range filesLike(t, "testdata/play/*.txt") {
		for i, script := range strings.Split(page(t, "cmd/attache/"+file), "\n-- ") {
			if !strings.Contains(script, "\nlayers chain=") {
				continue
			}
			s := transcript{name: fmt.Sprintf("%s/%d", filepath.Base(file), i)}
			for line := range strings.Lines(script) {
				line = strings.TrimSuffix(line, "\n")
				if chain, ok := strings.CutPrefix(line, "layers chain="); ok {
					config, env, _ := strings.Cut(chain, ",")
					s.env = append(strings.Split(env, ","), "ATTACHE_CONFIG=testdata/play/"+config+".yaml")
				}
				if m := sent.FindStringSubmatch(line); m != nil && !strings.Contains(m[2], `"id":"attache`) {
					s.lines = append(s.lines, transcriptLine{m[1] == "server", []byte(m[2] + "\n")})
				}
			}
			all = append(all, s)
		}
	}
	return all
}

// saidInSessions reads the recorded sessions.
func saidInSessions(t *testing.T) []transcript {
	var all []transcript
	for _, file := range filesLike(t, "../../testdata/sessions/*.jsonl") {
		recorded, err := record.Read(strings.NewReader(page(t, "cmd/attache/"+file)))
		check(t, err)
		s := transcript{name: filepath.Base(file)}
		if config := strings.TrimSuffix(file, ".jsonl") + ".yaml"; exists(config) {
			s.env = append(s.env, "ATTACHE_CONFIG="+config)
		}
		for _, e := range recorded.Events {
			ours := recorded.Header.IDPrefix != "" && bytes.Contains(e.Line, []byte(`"`+recorded.Header.IDPrefix))
			if at := e.At; !ours && (at == proxy.ClientIn.String() || at == proxy.ServerOut.String()) {
				s.lines = append(s.lines, transcriptLine{at == proxy.ServerOut.String(), e.Line})
			}
		}
		all = append(all, s)
	}
	return all
}

func filesLike(t *testing.T, pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	return files
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
