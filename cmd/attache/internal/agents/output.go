package agents

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The formats in which agents write their result to stdout.
const (
	claudeJSON = "claude-json"
	codexJSONL = "codex-jsonl"
	geminiJSON = "gemini-json"
)

// maxOutput is the maximum size of each output of a run, in bytes.
const maxOutput = 10 << 20

// An output is a file with the first maxOutput bytes of an agent's output.
type output struct {
	file      *os.File
	remaining int64
	err       error // why bytes were not written, nil if all were
}

func newOutput(path string) (*output, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return &output{file: f, remaining: maxOutput}, err
}

// Write implements io.Writer. It never fails, so that the agent can continue. It drops bytes that
// exceed the limit or cannot be written.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.file.Write(b[:min(int64(len(b)), o.remaining)])
	o.remaining -= int64(n)
	switch {
	case err != nil:
		o.err = err
	case n < len(b):
		o.err = fmt.Errorf("only its first %d MiB are kept", maxOutput>>20)
	}
	return len(b), nil
}

// A result is the result that an agent's program reports at the end of a run.
type result struct {
	text, cost string
	failed     bool
}

// result returns the result in an output with the given format. If the output does not have that
// format, the whole output is the text of the result.
func (o *output) result(format string) (r result) {
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return result{}
	}
	if format == codexJSONL {
		return codexResult(o.file)
	}
	data, _ := io.ReadAll(io.LimitReader(o.file, maxOutput))
	if format == claudeJSON {
		data = lastResult(data)
	}
	var report struct {
		Result   *string     `json:"result"`
		Response *string     `json:"response"`
		Cost     json.Number `json:"total_cost_usd"`
		IsError  bool        `json:"is_error"`
		Subtype  string      `json:"subtype"` // with errors, in place of result
		Errors   []any       `json:"errors"`
		Error    *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(data, &report); {
	case err == nil && format == claudeJSON && report.Result != nil:
		return result{text: *report.Result, cost: cost(report.Cost), failed: report.IsError}
	case err == nil && format == claudeJSON && (report.IsError || strings.HasPrefix(report.Subtype, "error")): // for example, its budget is spent
		var texts []string
		for _, e := range report.Errors {
			texts = append(texts, fmt.Sprint(e))
		}
		return result{text: cmp.Or(strings.Join(texts, "\n"), report.Subtype), cost: cost(report.Cost), failed: true}
	case err == nil && format == geminiJSON && report.Response != nil:
		return result{text: *report.Response}
	case err == nil && format == geminiJSON && report.Error != nil:
		return result{text: report.Error.Message, failed: true}
	}
	return result{text: strings.ToValidUTF8(strings.TrimSpace(string(data)), "\ufffd")}
}

// lastResult returns the last result among the messages that Claude Code writes as an array if it is
// verbose, which its user's settings can say. It returns data unchanged if there is none.
func lastResult(data []byte) []byte {
	var messages []json.RawMessage
	_ = json.Unmarshal(data, &messages) // other data has no messages
	for _, m := range slices.Backward(messages) {
		var message struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(m, &message) == nil && message.Type == "result" {
			return m
		}
	}
	return data
}

// cost returns a cost with at most six decimal places, or "" if there is none.
func cost(n json.Number) string {
	usd, err := n.Float64()
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(math.Round(usd*1e6)/1e6, 'f', -1, 64)
}

// A codexEvent is a line of codex exec --json.
type codexEvent struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"` // of an error
	Item     struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func codexResult(from io.Reader) (r result) {
	var lastError string // Codex retries after most errors
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxOutput)
	for lines.Scan() {
		var e codexEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch {
		case e.Type == "item.completed" && e.Item.Type == "agent_message":
			r.text = e.Item.Text
		case e.Type == "turn.failed":
			r.text, r.failed = e.Error.Message, true
		case e.Type == "turn.completed":
			r.failed, lastError = false, ""
		case e.Type == "error":
			lastError = e.Message
		}
	}
	r.text = cmp.Or(r.text, lastError)
	return r
}

// maxThreadLine is the maximum length of the line with the id of the thread.
const maxThreadLine = 64 << 10

// findThread reads the output of codex exec --json until it has the id of the thread. It returns "" if it
// finds none.
func findThread(from io.Reader) string {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxThreadLine)
	for lines.Scan() {
		var e codexEvent
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Type == "thread.started" && e.ThreadID != "" {
			return e.ThreadID
		}
	}
	return ""
}

// beginRun makes the directory for the outputs of a session, in which a run begins, and returns its path.
// It removes those of sessions whose last run began longer ago than age, but not the spooled ends.
func beginRun(outputs, session string, age time.Duration) (dir string, err error) {
	dir = filepath.Join(outputs, session)
	now := time.Now()
	if err := cmp.Or(os.MkdirAll(dir, 0o700), os.Chtimes(dir, now, now)); err != nil {
		return "", err
	}
	entries, _ := os.ReadDir(outputs)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && e.Name() != spoolName && now.Sub(info.ModTime()) > age {
			_ = os.RemoveAll(filepath.Join(outputs, e.Name()))
		}
	}
	return dir, nil
}
