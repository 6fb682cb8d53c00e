//go:build e2e

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A model replaces the model service of a coding agent, on loopback. It calls tools according to a script and
// records each request, which contains everything that a real model would get.
//
// A prompt selects the script: "RUN:main" runs the script main. The position in the script
// follows from the request, which contains the results of the tools since that prompt.
type model struct {
	url string

	mu      sync.Mutex
	scripts map[string][]toolCall
	given   map[string]string // the body of the last request, by script
	done    map[string]bool   // the scripts that are complete
	steps   map[string][]int  // the index of the next call, by the number of results
}

// A toolCall calls a tool of a server, or of the agent itself if server is empty. If until is not empty, the
// call is repeated until the conversation contains that text.
type toolCall struct{ server, tool, arguments, until string }

// A service is the interface of one vendor's models.
type service interface {
	// read returns the user's last prompt, the number of results since then, and the names of
	// the tools.
	read(body []byte) (prompt string, results int, tools []string)
	// write answers with a tool call, or with text if name is empty.
	write(w http.ResponseWriter, body []byte, name, arguments, text string)
}

func newModel(t *testing.T, s service, scripts map[string][]toolCall) *model {
	t.Helper()
	m := &model{scripts: scripts, given: make(map[string]string), done: make(map[string]bool), steps: make(map[string][]int)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || strings.Contains(r.URL.Path, "ount") { // token counts
			fmt.Fprint(w, `{"data":[],"models":[],"input_tokens":1,"totalTokens":1}`)
			return
		}
		m.answer(w, s, body)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

var scriptName = regexp.MustCompile(`RUN:(\w+)`)

func (m *model) answer(w http.ResponseWriter, s service, body []byte) {
	prompt, results, tools := s.read(body)
	names := scriptName.FindAllStringSubmatch(prompt, -1)
	if names == nil || len(tools) == 0 { // a title, a summary or a quota check
		s.write(w, body, "", "", "done")
		return
	}
	name := names[len(names)-1][1]
	m.mu.Lock()
	script := m.scripts[name]
	m.given[name] = string(body)
	step := m.step(name, results)
	m.done[name] = step >= len(script)
	m.mu.Unlock()
	if step >= len(script) {
		s.write(w, body, "", "", "done "+name)
		return
	}
	if slices.Contains(tools, waitForServers) {
		s.write(w, body, waitForServers, "{}", "")
		return
	}
	s.write(w, body, script[step].find(tools), fill(script[step].arguments, body), "")
}

var (
	creatorForm = regexp.MustCompile(`The session (ses_[0-9a-z]{12}), of another agent`)
	childForm   = regexp.MustCompile(`session_id\\*": \\*"(ses_[0-9a-z]{12})`)
)

// step returns the index of a script's next call if its last request has the given number of results. The caller
// holds the lock.
func (m *model) step(name string, results int) int {
	script, steps := m.scripts[name], m.steps[name]
	for n := len(steps); n <= results; n++ {
		step := 0
		if n > 0 {
			step = steps[n-1] + 1
			if last := step - 1; last < len(script) && !strings.Contains(m.given[name], script[last].until) {
				step = last
			}
		}
		steps = append(steps, step)
	}
	m.steps[name] = steps
	return steps[results]
}

// fill replaces {creator}, the session that created this one, and {child}, a session that this one created, with
// the values from a request.
func fill(arguments string, body []byte) string {
	for name, form := range map[string]*regexp.Regexp{"{creator}": creatorForm, "{child}": childForm} {
		if found := form.FindSubmatch(body); found != nil {
			arguments = strings.ReplaceAll(arguments, name, string(found[1]))
		}
	}
	return arguments
}

// waitForServers is a tool that Claude Code offers while some servers are still starting. Its results do not
// count as steps of a script.
const waitForServers = "WaitForMcpServers"

// waitFailed is the result of waitForServers if a server did not start in time.
var waitFailed = regexp.MustCompile(`"toolu_` + waitForServers + `\w*","content":"(?:[^"\\]|\\.)*","is_error":true`)

// find returns the agent's name for the tool. If the agent loads tools on demand, that is the name in Claude
// Code.
func (c toolCall) find(tools []string) string {
	if c.server == "" {
		return c.tool
	}
	plain := strings.NewReplacer("-", "_") // as Codex writes names
	for _, name := range tools {
		if strings.Contains(plain.Replace(name), plain.Replace(c.server)) && strings.HasSuffix(name, c.tool) {
			return name
		}
	}
	return "mcp__" + c.server + "__" + c.tool
}

// count returns how often a text is in the last request of a script, and whether there was a request. A
// conversation only grows, so the last request contains everything.
func (m *model) count(script, text string) (times int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.given[script]
	return strings.Count(last, text), ok
}

// extend adds calls to a script. If the script was complete, they are made at the next request.
func (m *model) extend(script string, more ...toolCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scripts[script] = append(m.scripts[script][:len(m.scripts[script]):len(m.scripts[script])], more...)
	m.done[script] = false
}

// last returns the last request of a script.
func (m *model) last(script string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.given[script]
}

// complete reports whether a script is complete.
func (m *model) complete(script string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[script]
}

// events writes server-sent events. The member type of an event, if any, is its name.
func events(w http.ResponseWriter, all ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range all {
		b, err := json.Marshal(data)
		if err != nil {
			panic(err) // a bug in the test
		}
		if e, ok := data.(map[string]any); ok && e["type"] != nil {
			fmt.Fprintf(w, "event: %s\n", e["type"])
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

type object = map[string]any

// messages implements Anthropic's interface.
type messages struct{}

func (messages) read(body []byte) (prompt string, results int, tools []string) {
	var r struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Name string }
	}
	if json.Unmarshal(body, &r) != nil {
		return "", 0, nil
	}
	for _, message := range r.Messages {
		if message.Role != "user" {
			continue
		}
		var text string
		var blocks []struct {
			Type, Text string
			ID         string `json:"tool_use_id"`
		}
		if json.Unmarshal(message.Content, &text) != nil && json.Unmarshal(message.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			text += b.Text
			if b.Type == "tool_result" && !strings.Contains(b.ID, waitForServers) {
				results++
			}
		}
		if strings.Contains(text, "RUN:") {
			prompt, results = text, 0
		}
	}
	for _, tool := range r.Tools {
		tools = append(tools, tool.Name)
	}
	return prompt, results, tools
}

func (messages) write(w http.ResponseWriter, body []byte, name, arguments, text string) {
	var r struct {
		Model  string
		Stream bool
	}
	_ = json.Unmarshal(body, &r) // read has already parsed it
	block, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": text}, "end_turn"
	if name != "" {
		block = object{"type": "tool_use", "id": "toolu_" + name + newID(), "name": name, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": arguments}
		stop = "tool_use"
	}
	message := object{
		"id": "msg_" + newID(), "type": "message", "role": "assistant", "model": r.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}
	if r.Stream {
		events(w,
			object{"type": "message_start", "message": message},
			object{"type": "content_block_start", "index": 0, "content_block": block},
			object{"type": "content_block_delta", "index": 0, "delta": delta},
			object{"type": "content_block_stop", "index": 0},
			object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 1}},
			object{"type": "message_stop"})
		return
	}
	if name != "" {
		block["input"] = json.RawMessage(arguments)
	} else {
		block["text"] = text
	}
	message["content"], message["stop_reason"] = []any{block}, stop
	_ = json.NewEncoder(w).Encode(message) // the agent may have exited
}

// responses implements OpenAI's interface.
type responses struct{}

func (responses) read(body []byte) (prompt string, results int, tools []string) {
	var r struct {
		Input []struct {
			Type, Role string
			Content    []struct{ Text string }
		}
		Tools []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return "", 0, nil
	}
	for _, item := range r.Input {
		if item.Type == "function_call_output" {
			results++
		}
		for _, c := range item.Content {
			if item.Role == "user" && strings.Contains(c.Text, "RUN:") {
				prompt, results = c.Text, 0
			}
		}
	}
	for _, tool := range r.Tools {
		tools = append(tools, tool.Name)
		for _, inner := range tool.Tools {
			tools = append(tools, tool.Name+"\n"+inner.Name)
		}
	}
	return prompt, results, tools
}

func (responses) write(w http.ResponseWriter, _ []byte, name, arguments, text string) {
	item := object{"type": "message", "id": "msg_" + newID(), "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": text, "annotations": []any{}}}}
	if name != "" {
		item = object{"type": "function_call", "id": "fc_" + newID(), "call_id": "call_" + newID(), "name": name, "arguments": arguments, "status": "completed"}
		if space, inner, ok := strings.Cut(name, "\n"); ok {
			item["namespace"], item["name"] = space, inner
		}
	}
	response := func(status string, output ...any) object {
		return object{"id": "resp_1", "object": "response", "status": status, "output": append([]any{}, output...), "usage": object{
			"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		}}
	}
	events(w,
		object{"type": "response.created", "response": response("in_progress")},
		object{"type": "response.output_item.added", "output_index": 0, "item": item},
		object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": response("completed", item)})
}

// generateContent implements Gemini's interface.
type generateContent struct{}

func (generateContent) read(body []byte) (prompt string, results int, tools []string) {
	var r struct {
		Contents []struct {
			Parts []struct {
				Text             string
				FunctionResponse json.RawMessage
			}
		}
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return "", 0, nil
	}
	for _, content := range r.Contents {
		for _, part := range content.Parts {
			if part.FunctionResponse != nil {
				results++
			}
			if strings.Contains(part.Text, "RUN:") {
				prompt, results = part.Text, 0
			}
		}
	}
	for _, group := range r.Tools {
		for _, tool := range group.FunctionDeclarations {
			tools = append(tools, tool.Name)
		}
	}
	return prompt, results, tools
}

func (generateContent) write(w http.ResponseWriter, _ []byte, name, arguments, text string) {
	part := object{"text": text}
	if name != "" {
		part = object{"functionCall": object{"name": name, "args": json.RawMessage(arguments)}}
	}
	events(w, object{
		"candidates":    []any{object{"content": object{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	})
}
