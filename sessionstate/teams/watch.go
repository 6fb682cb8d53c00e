package teams

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// A Watch elects one of the processes of a session on this machine to ask a server for messages
// and to renew the lease: the process that has locked a file. From the file the others learn when
// they must also ask, and when the elected process gets no answers, because it was stopped or the
// server does not answer it. With the zero value, the process always asks.
//
// A Watch reduces the load of the server, but nothing depends on it: two processes that both ask
// get the same answers. It is for use by one goroutine.
type Watch struct {
	file     *os.File
	locked   bool
	count    uint64 // the count of Tell that was last read from the file
	answered uint64 // the value of count when the server last answered
}

// OpenWatch opens the watch of a session in a directory, whose files belong to the processes of
// one registry. If the file cannot be opened, the process always asks. [Watch.Close] closes it.
func OpenWatch(dir string, ref Ref) *Watch {
	w := &Watch{}
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return w
	}
	forgetWatches(dir)
	var err error
	if w.file, err = os.OpenFile(filepath.Join(dir, ref.ID), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		w.count = w.read(countOffset)
		w.answered = w.count
	}
	return w
}

// forgetWatches removes files that were unused for a long time.
func forgetWatches(dir string) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > Retention {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}

// Close closes the watch, so that another process can be elected.
func (w *Watch) Close() {
	if w.file != nil {
		_ = w.file.Close()
	}
}

// silentTime is how long the elected process may get no answer before the others ask too. It
// leaves them enough time to renew their leases.
const silentTime = Lease / 3

// Mine reports whether this process must ask. When the elected process ends in any way, the next
// one that calls Mine is elected. While the elected process gets no answers, all processes ask.
func (w *Watch) Mine(now time.Time) bool {
	if w.file == nil || w.locked {
		return true
	}
	free, err := filelock.Try(w.file)
	w.locked = free && err == nil
	silent := now.Sub(time.Unix(0, int64(w.read(answeredOffset)))).Abs()
	return free || err != nil || silent > silentTime
}

// Answered records that the server has answered this process.
func (w *Watch) Answered(now time.Time) {
	w.answered = w.count
	if w.locked {
		w.write(answeredOffset, uint64(now.UnixNano()))
	}
}

// Tell tells the other processes to ask.
func (w *Watch) Tell() {
	if w.file != nil {
		w.count = w.read(countOffset) + 1
		w.answered = w.count
		w.write(countOffset, w.count)
	}
}

// Told reports whether another process has called Tell since the server last answered this one.
func (w *Watch) Told() bool {
	if w.file == nil || w.locked {
		return false
	}
	w.count = w.read(countOffset)
	return w.count != w.answered
}

// The offsets of the count of Tell and of the time of Answered in the file.
const countOffset, answeredOffset = 0, 8

func (w *Watch) read(offset int64) uint64 {
	var b [8]byte
	_, _ = w.file.ReadAt(b[:], offset) // leaves 0 if the file is empty
	return binary.LittleEndian.Uint64(b[:])
}

func (w *Watch) write(offset int64, n uint64) {
	_, _ = w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, n), offset)
}
