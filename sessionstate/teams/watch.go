package teams

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"github.com/attache-mcp/attache/sessionstate/filelock"
)

// A Watch says which of the processes of a session on this machine asks a server for its
// messages and renews its lease: the one that has a file locked. The others learn from the file
// when to ask too. The zero value is that of a process that does all itself.
//
// It saves the server work and is not needed for anything to be right: two processes that both
// ask get the same answers. It is for use by one goroutine.
type Watch struct {
	file   *os.File
	locked bool
	heard  uint64 // the count in the file that was read last
}

// OpenWatch opens the watch of a session in a directory, whose files belong to the processes of
// one registry. If there can be no file, the process does all itself. [Watch.Close] closes it.
func OpenWatch(dir string, ref Ref) *Watch {
	w := &Watch{}
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return w
	}
	forgetWatches(dir)
	w.file, _ = os.OpenFile(filepath.Join(dir, ref.ID), os.O_RDWR|os.O_CREATE, 0o600)
	w.heard = w.count()
	return w
}

// forgetWatches removes the files of sessions that were begun long ago. Where one goes on, its
// next process has a file of its own and asks for itself.
func forgetWatches(dir string) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > Retention {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}

// Close lets another process take over.
func (w *Watch) Close() {
	if w.file != nil {
		_ = w.file.Close()
	}
}

// Mine reports whether this process is the one that asks. When that one ends, however it does,
// the next one that calls Mine follows it.
func (w *Watch) Mine() bool {
	if w.file == nil || w.locked {
		return true
	}
	free, err := filelock.Try(w.file)
	w.locked = free && err == nil
	return free || err != nil
}

// Tell has the other processes ask.
func (w *Watch) Tell() {
	if w.file != nil {
		w.heard = w.count() + 1
		_, _ = w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, w.heard), 0)
	}
}

// Told reports whether another process has called Tell since the last call.
func (w *Watch) Told() bool {
	if w.file == nil || w.locked {
		return false
	}
	last := w.heard
	w.heard = w.count()
	return w.heard != last
}

func (w *Watch) count() uint64 {
	var b [8]byte
	if w.file == nil {
		return 0
	}
	_, _ = w.file.ReadAt(b[:], 0) // of an empty file it is 0
	return binary.LittleEndian.Uint64(b[:])
}
