package chain

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// newFile returns the file of one process that writes to the disk d.
func newFile(path string, maxSize int64, d *disk) *file {
	return &file{path: path, maxSize: maxSize, now: time.Now, lock: lock{path: keyFile(path)}, write: d.write}
}

// After any sequence of failures of the processes that write a file, the chain is unbroken.
// If any line but the last is then removed, that is found.
func TestAnyHistoryVerifies(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			d := &disk{room: 1 << 20}
			maxSize := int64(500 + r.IntN(1500))
			processes := []*file{newFile(path, maxSize, d), newFile(path, maxSize, d)}
			var history []string
			written := 0
			for range 25 {
				i := r.IntN(len(processes))
				what := r.IntN(10)
				history = append(history, fmt.Sprint(i, "/", what))
				switch what {
				case 0: // the process dies, and another one starts
					processes[i].close()
					processes[i].lock.close()
					processes[i] = newFile(path, maxSize, d)
				case 1: // a process dies within a line
					tear(t, path, r)
				case 2: // the disk is full for a moment
					d.set(r.IntN(200))
				default:
					n, _ := processes[i].append(queueOf([][]byte{body(1), body(2), body(3)}[:1+r.IntN(3)]...))
					written += n
					d.set(1 << 20)
				}
			}
			d.set(1 << 20)
			if n, err := processes[0].append(queueOf(body(4))); err != nil { // so that no line is incomplete at the end
				t.Fatalf("%v: %d, %v", history, n, err)
			}
			var v Verifier
			if err := verify(t, path, &v); err != nil {
				t.Fatalf("%v: %v", history, err)
			}
			if v.Records < written+1 || v.Last != uint64(v.Records) {
				t.Errorf("%v: %d records of %d, the last is %d", history, v.Records, written, v.Last)
			}
			dropOne(t, path, r, history)
		})
	}
}

// queueOf returns a queue of records.
func queueOf(bodies ...[]byte) (all []item) {
	for _, b := range bodies {
		all = append(all, item{body: b})
	}
	return all
}

// tear writes a part of a line at the end of the file.
func tear(t *testing.T, path string, r *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if os.IsNotExist(err) {
		return
	}
	check(t, err)
	defer f.Close()
	end := tip{seq: uint64(r.IntN(30))}
	part := end.next(nil, body(9))
	if _, err := f.Write(part[:1+r.IntN(len(part)-2)]); err != nil {
		t.Fatal(err)
	}
}

// dropOne removes a line from one of the files, and checks that this is found.
func dropOne(t *testing.T, path string, r *rand.Rand, history []string) {
	t.Helper()
	names, err := rotatedFiles(path)
	check(t, err)
	names = append(names, path)
	name := names[r.IntN(len(names))]
	all := lines(t, name)
	n := len(all)
	if name == path {
		n-- // a chain does not show that its last line was removed
	}
	if n == 0 {
		return
	}
	i := r.IntN(n)
	rest := append(bytes.Join(all[:i], nil), bytes.Join(all[i+1:], nil)...)
	check(t, os.WriteFile(name, rest, 0o600))
	if err := verify(t, path, &Verifier{}); err == nil {
		t.Errorf("%v: line %d of %s was dropped and not missed:\n%s", history, i+1, filepath.Base(name), bytes.Join(all, nil))
	}
}
