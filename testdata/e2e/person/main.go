// Person uses attache as a user with a client does:
//
//	person CONFIG ATTACHE URL
//
// It starts attache in front of the server at URL and calls a tool. If the answer requires a
// login, it logs in and starts again. "person browse ADDRESS" acts as a browser that approves
// everything. CONFIG is JSON for server.oauth, to which Person adds the client that the suite
// has registered. The conformance suite runs Person as the client under test.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "browse" {
		jar, _ := cookiejar.New(nil) // cannot fail
		resp, err := (&http.Client{Jar: jar}).Get(os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		return
	}
	if len(os.Args) != 4 {
		log.Fatal("usage: person CONFIG ATTACHE URL")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(config, attache, url string) error {
	home, err := os.MkdirTemp("", "person-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if config, err = settings(home, config); err != nil {
		return err
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ATTACHE_CONFIG=" + config, "BROWSER=" + self + " browse"}
	for range 4 {
		answer, err := session(attache, url, env)
		if err != nil {
			return err
		}
		if strings.Contains(answer, "attache login ") {
			var stderr strings.Builder
			login := exec.Command(attache, "login", url)
			login.Env, login.Stderr = env, io.MultiWriter(os.Stderr, &stderr)
			if err = login.Run(); err == nil {
				continue
			}
			answer = stderr.String()
		}
		issuer := untrustedIssuer.FindStringSubmatch(answer)
		if issuer == nil {
			return err
		}
		if err := trust(config, issuer[1]); err != nil {
			return err
		}
	}
	return errors.New("attache asks for a login again and again")
}

// untrustedIssuer matches an authorization server that does not get the client's secret because
// the user has not named it.
var untrustedIssuer = regexp.MustCompile(`the client's secret is not sent to (\S+), which only the server names`)

// trust adds the authorization server to the configuration.
func trust(config, issuer string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	named := strings.Replace(string(text), `"oauth":{`, `"oauth":{"issuer":"`+issuer+`",`, 1)
	return os.WriteFile(config, []byte(named), 0o600)
}

// settings writes the configuration, with the client that the suite has registered.
func settings(home, oauth string) (string, error) {
	all := map[string]any{"store": "file"}
	registered := map[string]any{}
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &registered)
	for _, key := range []string{"client_id", "client_secret"} {
		if registered[key] != nil {
			all[key] = registered[key]
		}
	}
	if err := json.Unmarshal([]byte(oauth), &all); err != nil {
		return "", err
	}
	entry := map[string]any{"match": map[string]any{"url": "*"}, "server": map[string]any{"oauth": all}}
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"suite": entry}})
	if err != nil {
		return "", err
	}
	return home + "/attache.yaml", os.WriteFile(home+"/attache.yaml", text, 0o600)
}

// session runs one session, which calls a tool, and returns the last answer.
func session(attache, url string, env []string) (answer string, err error) {
	cmd := exec.Command(attache, "--", url)
	cmd.Env, cmd.Stderr = env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewReader(out)
	for id, request := range requests() {
		if _, err := fmt.Fprintln(in, request); err != nil {
			return "", err
		}
		for !strings.Contains(answer, fmt.Sprintf(`"id":%d,`, id)) && !strings.Contains(answer, fmt.Sprintf(`"id":%d}`, id)) {
			if answer, err = lines.ReadString('\n'); err != nil {
				return "", err
			}
		}
		if strings.Contains(answer, "attache login ") {
			break
		}
	}
	in.Close()
	io.Copy(io.Discard, lines)
	return answer, cmd.Wait()
}

// requests returns the messages of a session in the suite's protocol version.
func requests() []string {
	version := cmp.Or(os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"), "2025-11-25")
	if version < "2026" {
		return []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"person","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test-tool","arguments":{}}}`,
		}
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"person","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	return []string{
		`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + meta + `,"name":"test-tool","arguments":{}}}`,
	}
}
