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
// when to ask too, and that the one that asks does not: it was stopped, or the server does not
// answer it. The zero value is that of a process that does all itself.
//
// It saves the server work and is not needed for anything to be right: two processes that both
// ask get the same answers. It is for use by one goroutine.
type Watch struct {
	file   *os.File
	locked bool
	told   uint64 // the count in the file that was read last
	heard  uint64 // the count that the server has answered for
}

// OpenWatch opens the watch of a session in a directory, whose files belong to the processes of
// one registry. If there can be no file, the process does all itself. [Watch.Close] closes it.
func OpenWatch(dir string, ref Ref) *Watch {
	w := &Watch{}
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return w
	}
	forgetWatches(dir)
	var err error
	if w.file, err = os.OpenFile(filepath.Join(dir, ref.ID), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		w.told = w.read(countAt)
		w.heard = w.told
	}
	return w
}

// forgetWatches removes the files of sessions that nobody has asked for in a long time.
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

// silentTime is how long the process that asks may have no answer before the others ask for
// themselves. It leaves them time to renew their leases.
const silentTime = Lease / 3

// Mine reports whether this process asks. When the one that did so ends, however it does, the
// next one that calls Mine follows it. While that one has no answers all processes ask.
func (w *Watch) Mine(now time.Time) bool {
	if w.file == nil || w.locked {
		return true
	}
	free, err := filelock.Try(w.file)
	w.locked = free && err == nil
	silent := now.Sub(time.Unix(0, int64(w.read(answeredAt)))).Abs()
	return free || err != nil || silent > silentTime
}

// Answered says that the server has answered this process, and tells the others.
func (w *Watch) Answered(now time.Time) {
	w.heard = w.told
	if w.locked {
		w.write(answeredAt, uint64(now.UnixNano()))
	}
}

// Tell has the other processes ask.
func (w *Watch) Tell() {
	if w.file != nil {
		w.told = w.read(countAt) + 1
		w.heard = w.told
		w.write(countAt, w.told)
	}
}

// Told reports whether another process has called Tell, and the server has not answered this one
// since it was told.
func (w *Watch) Told() bool {
	if w.file == nil || w.locked {
		return false
	}
	w.told = w.read(countAt)
	return w.told != w.heard
}

// Where the file has the count of Tell, and the time of Answered.
const countAt, answeredAt = 0, 8

func (w *Watch) read(at int64) uint64 {
	var b [8]byte
	_, _ = w.file.ReadAt(b[:], at) // of an empty file it is 0
	return binary.LittleEndian.Uint64(b[:])
}

func (w *Watch) write(at int64, n uint64) {
	_, _ = w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, n), at)
}
