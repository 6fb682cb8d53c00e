package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The forms of what agents write to stdout.
const (
	claudeJSON = "claude-json"
	codexJSONL = "codex-jsonl"
	geminiJSON = "gemini-json"
)

// An output is a file with the beginning of what an agent writes.
type output struct {
	file *os.File
	left int64
}

func newOutput(path string) (*output, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return &output{f, maxOutput}, err
}

// Write implements io.Writer. It never fails, so that the agent goes on: it drops what is over
// the limit or cannot be written.
func (o *output) Write(b []byte) (int, error) {
	keep := b[:min(int64(len(b)), o.left)]
	if n, err := o.file.Write(keep); err == nil {
		o.left -= int64(n)
	}
	return len(b), nil
}

// A result is what an agent's program reports at the end of a run.
type result struct {
	text, cost string
	failed     bool
}

// result returns the result that an agent has written in this form. Output that does not have
// the form is the result as it is.
func (o *output) result(form string) (r result) {
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return result{}
	}
	if form == codexJSONL {
		return codexResult(o.file)
	}
	data, _ := io.ReadAll(io.LimitReader(o.file, maxOutput))
	var said struct {
		Result   *string     `json:"result"`
		Response *string     `json:"response"`
		Cost     json.Number `json:"total_cost_usd"`
		IsError  bool        `json:"is_error"`
		Error    *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(bytes.TrimSpace(data), &said); {
	case err == nil && form == claudeJSON && said.Result != nil:
		return result{text: *said.Result, cost: cost(said.Cost), failed: said.IsError}
	case err == nil && form == geminiJSON && said.Response != nil:
		return result{text: *said.Response}
	case err == nil && form == geminiJSON && said.Error != nil:
		return result{text: said.Error.Message, failed: true}
	}
	return result{text: strings.ToValidUTF8(strings.TrimSpace(string(data)), "\ufffd")}
}

// cost returns a cost with six digits behind the point at most; "" for none.
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
	Item     struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

func codexResult(from io.Reader) (r result) {
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
			r.failed = false
		}
	}
	return r
}

// threadBytes bounds the output in which the id of the thread is looked for.
const threadBytes = 64 << 10

// A threadFinder finds the id of the thread in what codex exec --json writes.
type threadFinder struct {
	found func(id string)
	buf   []byte
	over  bool
}

// Write implements io.Writer.
func (f *threadFinder) Write(b []byte) (int, error) {
	for rest := b; !f.over && len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		f.buf = append(f.buf, line...)
		if f.over = len(f.buf) > threadBytes; f.over || !whole {
			break
		}
		var e codexEvent
		if json.Unmarshal(f.buf, &e) == nil && e.Type == "thread.started" && e.ThreadID != "" {
			f.over = true
			f.found(e.ThreadID)
		}
		f.buf, rest = f.buf[:0], after
	}
	return len(b), nil
}

// removeOld removes the outputs of sessions whose last run began longer ago than age. The ends that
// are to be reported stay.
func removeOld(dir string, age time.Duration) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() && e.Name() != spoolName && time.Since(info.ModTime()) > age {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
