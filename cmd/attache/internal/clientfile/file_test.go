package clientfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// write writes a file in a new directory and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()
	name := "the \"client's\"\nfile ü*.json"
	if runtime.GOOS == "windows" {
		name = "the client's file ü.json" // Windows allows no quotes, line breaks or asterisks in names
	}
	path := filepath.Join(t.TempDir(), name)
	check(t, os.WriteFile(path, []byte(content), 0o640))
	return path
}

// holds checks the content of a file.
func holds(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	check(t, err)
	if string(got) != want {
		t.Errorf("%s holds %.80q, want %.80q", filepath.Base(path), got, want)
	}
}

// names returns the names in the directory of path.
func names(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	check(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func become(content string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(content), nil }
}

func TestUpdate(t *testing.T) {
	path := write(t, "before")
	done, err := Update(path, filepath.Dir(path), noon, become("after"))
	check(t, err)
	holds(t, path, "after")
	holds(t, done.Backup, "before")
	if want := filepath.Join(filepath.Dir(path), backupName(path)+"20261121T120000Z.bak"); done.Backup != want {
		t.Errorf("the backup is %s, want %s", done.Backup, want)
	}
	for _, file := range []string{path, done.Backup} {
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}

	// A second update in the same second does not overwrite the first backup.
	again, err := Update(path, filepath.Dir(path), noon, become("later"))
	check(t, err)
	holds(t, done.Backup, "before")
	holds(t, again.Backup, "after")
	if n := len(names(t, path)); n != 3 {
		t.Errorf("%d files are there: %q", n, names(t, path))
	}

	// An edit that changes nothing writes nothing.
	if same, err := Update(path, filepath.Dir(path), noon, become("later")); err != nil || same.Backup != "" || len(names(t, path)) != 3 {
		t.Errorf("%+v, %v, %q", same, err, names(t, path))
	}
}

// Changes that another program makes during an update are not lost.
func TestUpdateOfChangingFile(t *testing.T) {
	path := write(t, "0")
	calls := 0
	done, err := Update(path, filepath.Dir(path), noon, func(content []byte) ([]byte, error) {
		if calls++; calls < 3 {
			check(t, os.WriteFile(path, append(content, '+'), 0o640))
		}
		return append(bytes.Clone(content), '!'), nil
	})
	check(t, err)
	holds(t, path, "0++!")
	holds(t, done.Backup, "0++")
	if len(names(t, path)) != 2 {
		t.Errorf("left behind: %q", names(t, path))
	}
}

// A write by another program just before the exchange is detected and put back.
func TestExchangeOfChangedFile(t *testing.T) {
	path := write(t, "theirs")
	ours := path + ".ours"
	check(t, os.WriteFile(ours, []byte("ours"), 0o600))
	if err := exchangeFor(ours, path, []byte("old"), []byte("ours"), exchange); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system cannot exchange two files in one step")
	} else if !errors.Is(err, errChanged) {
		t.Errorf("error %v", err)
	}
	holds(t, path, "theirs")
	holds(t, ours, "ours")
	if err := exchangeFor(ours, path, []byte("theirs"), []byte("ours"), exchange); err != nil {
		t.Error(err)
	}
	holds(t, path, "ours")
	holds(t, ours, "theirs")
}

// If files cannot be exchanged, ours is renamed. If that fails, no file of another program is
// removed.
func TestInstallWithoutExchange(t *testing.T) {
	broken := errors.New("broken")
	never := func(string, string) error { return broken }
	calls := 0
	once := func(a, b string) error {
		if calls++; calls > 1 {
			return broken
		}
		return errors.Join(os.Rename(a, a+"x"), os.Rename(b, a), os.Rename(a+"x", b))
	}
	tests := []struct {
		name, there  string
		swap         func(a, b string) error
		target, left string // what the two files hold afterwards
		want         string
	}{
		{"renamed", "old", never, "ours", "", ""},
		{"exchanged", "old", once, "ours", "", ""},
		{"cannot be put back", "theirs", once, "ours", "theirs", "it cannot be replaced: broken\nits previous content is in "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls = 0
			path := write(t, test.there)
			ours := path + ".ours"
			check(t, os.WriteFile(ours, []byte("ours"), 0o600))
			err := install(ours, path, []byte("old"), []byte("ours"), test.swap)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			holds(t, path, test.target)
			if test.left != "" {
				holds(t, ours, test.left)
			} else if _, err := os.Stat(ours); err == nil {
				t.Error("ours is left behind")
			}
		})
	}
	path := write(t, "old")
	ours := filepath.Join(filepath.Dir(path), "ours")
	check(t, os.WriteFile(ours, []byte("ours"), 0o600))
	if err := install(ours, filepath.Join(path, "no directory"), []byte("old"), []byte("ours"), never); err == nil || len(names(t, path)) != 1 {
		t.Errorf("error %v, left %q", err, names(t, path))
	}
}

// Nothing that another program writes is lost, at whatever time it writes. The program here writes
// all the time, and replaces the file by renaming.
func TestExchangeLosesNothing(t *testing.T) {
	path := write(t, "0")
	ours := path + ".ours"
	if exchange(path, path) != nil {
		t.Skip("this system cannot exchange two files in one step")
	}
	stop, written := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				written <- n
				return
			default:
			}
			own := path + ".own"
			if err := errors.Join(os.WriteFile(own, []byte(strconv.Itoa(n+1)), 0o600), os.Rename(own, path)); err != nil {
				t.Error(err)
			}
		}
	}()
	through, noticed := 0, 0
	for range 500 {
		old, err := os.ReadFile(path)
		check(t, err)
		content := append(bytes.Clone(old), '!')
		check(t, os.WriteFile(ours, content, 0o600))
		switch err := exchangeFor(ours, path, old, content, exchange); {
		case err == nil:
			through++
		case errors.Is(err, errChanged):
			noticed++
		default:
			t.Fatal(err)
		}
	}
	close(stop)
	last := <-written
	got, err := os.ReadFile(path)
	if err != nil || strings.TrimRight(string(got), "!") != strconv.Itoa(last) {
		t.Errorf("the file holds %q, written last was %d: %v", got, last, err)
	}
	t.Logf("%d edits went through, %d were undone, between %d writes", through, noticed, last)
}

// Update gives up when another program never stops writing, and leaves that program's file.
func TestUpdateGivesUp(t *testing.T) {
	path := write(t, "0")
	_, err := Update(path, filepath.Dir(path), noon, func(content []byte) ([]byte, error) {
		check(t, os.WriteFile(path, append(content, '+'), 0o640))
		return []byte("never"), nil
	})
	if !errors.Is(err, errChanged) {
		t.Errorf("error %v", err)
	}
	holds(t, path, "0+++++")
	if len(names(t, path)) != 1 {
		t.Errorf("left behind: %q", names(t, path))
	}
}

func TestUpdateRefuses(t *testing.T) {
	broken := errors.New("broken")
	path := write(t, "before")
	if _, err := Update(path, filepath.Dir(path), noon, func([]byte) ([]byte, error) { return []byte("after"), broken }); err != broken {
		t.Errorf("error %v", err)
	}
	holds(t, path, "before")
	if _, err := Update(path+"x", filepath.Dir(path), noon, become("")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Update(filepath.Dir(path), t.TempDir(), noon, become("")); err == nil || !strings.Contains(err.Error(), "it is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Update(path, filepath.Join(path, "backups"), noon, become("after")); err == nil || !strings.Contains(err.Error(), "no directory for backups can be made in ") {
		t.Errorf("no place for backups: %v", err)
	}
	holds(t, path, "before")
	if len(names(t, path)) != 1 {
		t.Errorf("left behind: %q", names(t, path))
	}
}

// Preview returns the errors of Update, and allows an edit that changes nothing in any file.
func TestPreview(t *testing.T) {
	broken := errors.New("broken")
	path, readOnly := write(t, "before"), write(t, "before")
	check(t, os.Chmod(readOnly, 0o400))
	for _, c := range []struct {
		name, path string
		edit       func([]byte) ([]byte, error)
		want       string // a part of the error, empty for none
	}{
		{"a change", path, become("after"), ""},
		{"a failed edit", path, func([]byte) ([]byte, error) { return nil, broken }, "broken"},
		{"a directory", filepath.Dir(path), become("after"), "it is a directory"},
		{"read-only", readOnly, become("after"), "it is read-only"},
		{"read-only, without a change", readOnly, become("before"), ""},
	} {
		if err := Preview(c.path, c.edit); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	holds(t, path, "before")
}

// Without a directory for state, the backup is next to the file, and not in the working directory.
func TestBackups(t *testing.T) {
	file := filepath.Join("a", "mcp.json")
	for state, want := range map[string]string{"": "a", "state": filepath.Join("state", "attache", "backups")} {
		if got := Backups(state, file); got != want {
			t.Errorf("with %q: got %s, want %s", state, got, want)
		}
	}
}

// A file in a directory that cannot be written to is not changed.
func TestUpdateInReadOnlyDirectory(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user can write to a read-only directory")
	}
	path := write(t, "before")
	check(t, os.Chmod(filepath.Dir(path), 0o500))
	defer os.Chmod(filepath.Dir(path), 0o700)
	if _, err := Update(path, filepath.Dir(path), noon, become("after")); err == nil || !strings.Contains(err.Error(), "no backup can be written to ") {
		t.Errorf("error %v", err)
	}
	holds(t, path, "before")
}

// A reader finds the complete old file or the complete new one.
func TestUpdateIsOneStep(t *testing.T) {
	a, b := strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)
	path := write(t, a)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := os.ReadFile(path)
			if err != nil && runtime.GOOS == "windows" {
				continue // Windows can refuse to open the file for a moment
			}
			if err != nil || string(got) != a && string(got) != b {
				t.Errorf("a reader found %d bytes, %v", len(got), err)
				return
			}
		}
	}()
	for i := range 10 {
		if _, err := Update(path, filepath.Dir(path), noon, become([]string{b, a}[i%2])); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
}

func TestDropBackups(t *testing.T) {
	bare := func(content []byte) []byte { return bytes.TrimPrefix(content, []byte("wrapped ")) }
	path := write(t, "original")
	for i, content := range []string{"wrapped original", "wrapped edited", "edited"} {
		if _, err := Update(path, filepath.Dir(path), noon.Add(time.Duration(i)*time.Hour), become(content)); err != nil {
			t.Fatal(err)
		}
	}
	stranger := path + ".attache-mine"
	check(t, os.WriteFile(stranger, []byte("edited"), 0o600))
	other := filepath.Join(filepath.Dir(path), backupName(path)+"note.txt")
	check(t, os.WriteFile(other, []byte("edited"), 0o600))

	// A backup that differs from the file in more than attache is kept.
	left, err := DropBackups(filepath.Dir(path), path, bare)
	if err != nil || len(left) != 2 || len(names(t, path)) != 5 {
		t.Errorf("left %q, %v; there are %q", left, err, names(t, path))
	}
	holds(t, left[0], "original")
	holds(t, left[1], "wrapped original")

	// A backup that holds nothing that the file lacks is removed.
	if _, err := Update(path, filepath.Dir(path), noon.Add(3*time.Hour), become("original")); err != nil {
		t.Fatal(err)
	}
	left, err = DropBackups(filepath.Dir(path), path, bare)
	if err != nil || len(left) != 1 {
		t.Errorf("left %q, %v", left, err)
	}
	holds(t, left[0], "edited")
	holds(t, stranger, "edited")
	holds(t, path, "original")

	// So is a backup of a file that is still wrapped in part.
	for i, content := range []string{"wrapped original", "edited", "wrapped original"} {
		if _, err := Update(path, filepath.Dir(path), noon.Add(time.Duration(4+i)*time.Hour), become(content)); err != nil {
			t.Fatal(err)
		}
	}
	left, err = DropBackups(filepath.Dir(path), path, bare)
	if err != nil || len(left) != 3 {
		t.Errorf("left %q, %v", left, err)
	}
	holds(t, other, "edited")
}

var check = testkit.Check
