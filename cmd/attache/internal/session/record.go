package session

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
)

// recordEnd is how long the end of a session waits for the disk.
const recordEnd = 2 * time.Second

// A recording writes a session to a file.
type recording struct {
	*record.Recorder
	file     *os.File
	idPrefix string
	log      *slog.Logger
}

// startRecording starts to record a session to a file. It never overwrites a file: a client may
// start a server twice with one configuration, to probe it or in two windows. It takes the next
// free name instead.
func startRecording(p cli.Process, s *config.Settings, idPrefix string, secrets []string, log *slog.Logger) (*recording, error) {
	f, err := createRecording(s.Record)
	if err != nil {
		return nil, fmt.Errorf("the session cannot be recorded: %w: name another file with --record, or leave it out", err)
	}
	if f.Name() != s.Record {
		log.Info("the recording file exists already; recording to another one", "file", f.Name())
	}
	r := &recording{file: f, log: log, idPrefix: idPrefix}
	r.Recorder = record.NewRecorder(f, record.Options{
		IDPrefix: r.idPrefix,
		Server:   s.RecordedName(),
		Start:    assembly.SessionStart(p, s),
		Secrets:  config.Secrets(p, s, secrets),
		Failed: func(err error) {
			log.Warn("the recording stops; the session goes on", "file", f.Name(), "err", err)
		},
	})
	return r, nil
}

// createRecording creates the file path or, if it exists, the first of path-2, path-3 and so on
// that does not. If path is not a regular file, for example a pipe, it opens it.
func createRecording(path string) (*os.File, error) {
	ext := filepath.Ext(path)
	for n := 1; ; n++ {
		name := path
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if !errors.Is(err, fs.ErrExist) || n == 1000 {
			return f, err
		}
		if info, err := os.Stat(name); n == 1 && err == nil && !info.Mode().IsRegular() {
			return os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody reads is an error, no wait
		}
	}
}

// watch records a line that passes the relay.
func (r *recording) watch(at proxy.Point, line []byte) { r.Watch(at.String(), line) }

// end completes the recording. A disk that does not take it delays nothing: the recorder has
// reported it, or its goroutine stays behind.
func (r *recording) end() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Close() // Failed has reported it
		r.closeFile()
	}()
	select {
	case <-done:
	case <-time.After(recordEnd):
		r.log.Warn("the recording could not be completed in time", "file", r.file.Name())
	}
}

// closeFile closes the file, and removes it if the session had no messages: clients start
// servers only to see whether they start.
func (r *recording) closeFile() {
	info, err := r.file.Stat()
	if closing := r.file.Close(); closing != nil {
		r.log.Warn("the recording may not be complete", "file", r.file.Name(), "err", closing)
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		_ = os.Remove(r.file.Name())
	}
}
