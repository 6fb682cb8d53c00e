package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/proxytest"
)

// TestRulesGuide plays docs/rules.md. A section with a line
//
//	<!-- play: NAME=VALUE ... -->
//
// is a session: its yaml blocks are the configuration, the words are the
// environment, and each diff block is a frame before and after attache. A request of the
// client reaches the server or is answered; a result is the reply to a tools/list.
func TestRulesGuide(t *testing.T) {
	guide, dir, played := page(t, "docs/rules.md"), t.TempDir(), 0
	for _, section := range strings.Split(guide, "\n## ")[1:] {
		name, _, _ := strings.Cut(section, "\n")
		env := regexp.MustCompile(`(?m)^<!-- play:(.*)-->$`).FindStringSubmatch(section)
		if env == nil {
			continue
		}
		played++
		name = strings.Map(fileLetter, name)
		attachetest.WriteFile(t, filepath.Join(dir, name+".yaml"), strings.Join(blocks(section, "yaml"), "\n"))
		script := "layers chain=" + strings.Join(append([]string{name}, strings.Fields(env[1])...), ",") + "\n"
		for _, diff := range blocks(section, "diff") {
			script += play(t, name, diff)
		}
		attachetest.WriteFile(t, filepath.Join(dir, name+".txt"), script)
	}
	if played == 0 {
		t.Fatal("the guide has no section to play")
	}
	chain := func(s *proxytest.Session, arg string) middleware.Layer { return chainOf(t, s, dir, arg) }
	proxytest.Player{Named: map[string]func(*proxytest.Session, string) middleware.Layer{"chain": chain}}.Play(t, dir+"/*.txt")
}

// fileLetter replaces characters that are not safe in file names and in words of a script.
func fileLetter(r rune) rune {
	if strings.ContainsRune(" :,/", r) {
		return '_'
	}
	return r
}

// blocks returns the code blocks of a language in a text.
func blocks(text, language string) (all []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// play returns the lines of a script for one frame of the guide.
func play(t *testing.T, section, diff string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	if len(lines) != 2 || lines[0][0] != '-' || lines[1][0] != '+' {
		t.Fatalf("%s: a diff has one line with a minus and one with a plus:\n%s", section, diff)
	}
	var in, out struct {
		ID     json.RawMessage
		Method string
	}
	before, after := lines[0][1:], lines[1][1:]
	if err := errors.Join(json.Unmarshal([]byte(before), &in), json.Unmarshal([]byte(after), &out)); err != nil {
		t.Fatalf("%s: %v: %s", section, err, diff)
	}
	switch {
	case in.Method == "":
		return fmt.Sprintf("client-> {\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/list\"}\nserver> %s\nclient< %s\n", in.ID, before, after)
	case out.Method == "":
		return fmt.Sprintf("client> %s\nclient< %s\n", before, after)
	}
	return fmt.Sprintf("client> %s\nserver< %s\nserver-> {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n", before, after, in.ID)
}
