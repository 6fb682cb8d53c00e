//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package chain

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// While another process keeps the lock of a log, records of Commit fail in time and others
// wait, which is logged once. When the lock is free again, all records are written.
func TestLockIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		write(t, Options{File: path}, 0, 1)
		keeper, err := os.OpenFile(keyFile(path), os.O_CREATE|os.O_RDWR, 0o600)
		check(t, err)
		defer keeper.Close()
		if free, err := filelock.Try(keeper); !free || err != nil {
			t.Fatalf("locked: %v, %v", free, err)
		}

		var out bytes.Buffer
		l := New(Options{File: path, Retry: time.Millisecond, Log: slog.New(slog.NewTextHandler(&out, nil))})
		l.Append(body(1))
		began := time.Now()
		r := l.Commit(body(100))
		<-r.Done()
		if took := time.Since(began); !errors.Is(r.Err(), ErrLost) || !errors.Is(r.Err(), filelock.ErrHeld) || took > 2*lockPatience {
			t.Errorf("the record of Commit: %v, after %v", r.Err(), took)
		}
		check(t, filelock.Unlock(keeper))
		r = l.Commit(body(2))
		<-r.Done()
		if err := errors.Join(r.Err(), l.Close(10*time.Second), verify(t, path, &Verifier{})); err != nil {
			t.Error(err)
		}
		if got := len(lines(t, path)); got != 4 { // the first line and three records
			t.Errorf("the file has %d lines", got)
		}
		logged := out.String()
		if strings.Count(logged, "level=ERROR") != 1 || !strings.Contains(logged, "keeps the audit file locked: end it, or name another file") {
			t.Errorf("the log has %q", logged)
		}
		if !strings.Contains(logged, "it is locked by another process") {
			t.Errorf("the log does not report that another process has the lock: %q", logged)
		}
	})
}

// The log reports missing records when the lock is free and the receipts are settled: a handler may block,
// and neither other processes nor calls may wait for it.
func TestReportsWithoutTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var l *Log
	var reports, waiting int
	var free bool
	l = New(Options{File: path, Log: slog.New(testkit.LogHandler(func(context.Context, slog.Record) {
		other, err := os.OpenFile(keyFile(path), os.O_RDWR, 0)
		if err == nil {
			free, err = filelock.Try(other)
			err = errors.Join(err, other.Close())
		}
		if err != nil {
			t.Error(err)
		}
		reports++
		l.mu.Lock()
		waiting = l.waiting
		l.mu.Unlock()
	}))})
	check(t, l.Commit(body(0)).Err())
	check(t, os.Remove(path))
	check(t, l.Commit(body(1)).Err())
	check(t, l.Close(10*time.Second))
	if reports != 1 || !free || waiting != 0 {
		t.Errorf("%d reports, the lock is free: %v, %d records wait", reports, free, waiting)
	}
}
