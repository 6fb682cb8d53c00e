// Package clientfile reads and replaces the configuration files of MCP clients.
//
// [Update] is the one way by which such a file is written: in one step, with its mode and
// owner, after a backup, and not over what another program has written meanwhile. A file
// that it cannot read, or that changes all the time, is left alone.
package clientfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/robustio"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// MaxFile is how large a configuration may be, in bytes. Claude Code keeps much
// else in its file, and some are tens of megabytes long.
const MaxFile = 256 << 20

// attempts is how often [Update] starts again when the file changes meanwhile. Claude Code, for
// example, writes its file every few seconds.
const attempts = 5

// backupInfix stands in front of the time in the name of a backup.
const backupInfix = ".attache-"

// An UpdateResult is what [Update] did.
type UpdateResult struct {
	// Path is the file that was written, where links led to.
	Path string
	// Backup is where the content before is kept, empty if nothing was written.
	Backup string
}

// errChanged is returned by replace when the file is not what was read.
var errChanged = errors.New("it changed while it was being edited: try again, with the client closed")

// Load returns the content of a client's file, following links. An error that is
// [fs.ErrNotExist] says that there is none.
func Load(path string) (content []byte, target string, err error) {
	content, _, target, err = load(path)
	return content, target, err
}

func load(path string) (content []byte, info fs.FileInfo, target string, err error) {
	if target, err = filepath.EvalSymlinks(path); err != nil {
		if l, missing := os.Lstat(path); missing == nil && l.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, "", errors.New("it is a link that leads nowhere: correct or remove it")
		}
		return nil, nil, "", cli.Unreadable(err)
	}
	content, info, err = textfile.Read(target, textfile.Rules{Max: MaxFile})
	switch {
	case errors.Is(err, textfile.ErrTooLarge), errors.Is(err, textfile.ErrNotRegular), errors.Is(err, textfile.ErrDirectory):
		return nil, nil, "", fmt.Errorf("it %w: name another file", err)
	case err != nil:
		return nil, nil, "", cli.Unreadable(err)
	}
	return content, info, target, nil
}

// Update replaces the content of the file at path by what edit makes of it, or
// does nothing if edit returns the content it was given. A backup is written to the
// directory backups before, which is made if need be: next to the file it would be
// in the user's repository. The new file takes the place of the old one in one step,
// with its mode and owner, so that a reader finds either of them whole.
//
// If another program writes the file meanwhile, edit is called again with what is
// there then. Where the system can exchange two files in one step (Linux, macOS),
// that holds to the last moment; elsewhere what is written between the last look and
// the replacement is lost.
func Update(path, backups string, now time.Time, edit func(content []byte) ([]byte, error)) (UpdateResult, error) {
	for attempt := 1; ; attempt++ {
		done, err := updateOnce(path, backups, now, edit)
		if errors.Is(err, errChanged) && attempt < attempts {
			continue
		}
		return done, err
	}
}

func updateOnce(path, backups string, now time.Time, edit func([]byte) ([]byte, error)) (UpdateResult, error) {
	old, info, target, err := load(path)
	if err != nil {
		return UpdateResult{}, err
	}
	content, err := edit(old)
	if err != nil || bytes.Equal(content, old) {
		return UpdateResult{Path: target}, err
	}
	if err := replaceable(target, info); err != nil {
		return UpdateResult{}, err
	}
	backup, err := writeBackup(backups, target, old, info, now)
	if err != nil {
		return UpdateResult{}, err
	}
	if err := replace(target, old, content, info); err != nil {
		return UpdateResult{}, errors.Join(err, remove(backup))
	}
	return UpdateResult{Path: target, Backup: backup}, nil
}

// replaceable says why the file is not to be replaced, although the directory may
// allow it.
func replaceable(target string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("it is read-only: allow writing (chmod u+w %q), or take it out of what manages it", target)
	}
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("it may not be written by this user: %w: edit it as its owner", cli.Reason(err))
	}
	_ = f.Close()
	if n := links(info); n > 1 {
		return fmt.Errorf("it has %d names (hard links), and the others would keep the old content: replace them by symbolic links", n)
	}
	return nil
}

// writeBackup keeps old, the content of target, in dir and returns where.
func writeBackup(dir, target string, old []byte, info fs.FileInfo, now time.Time) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("no directory for backups can be made in %s: %w: let this user write there", filepath.Dir(dir), cli.Reason(err))
	}
	stem := filepath.Join(dir, backupName(target)) + now.UTC().Format("20060102T150405Z")
	for n := 1; ; n++ {
		path := stem + ".bak"
		if n > 1 {
			path = fmt.Sprintf("%s-%d.bak", stem, n)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("no backup can be written to %s: %w: let this user write there", dir, cli.Reason(err))
		}
		if err := fill(f, old, info); err != nil {
			return "", errors.Join(fmt.Errorf("no backup can be written: %w: make room for one", cli.Reason(err)), remove(path))
		}
		return path, nil
	}
}

// replace puts a file with content in the place of target, if that still has old
// in it.
func replace(target string, old, content []byte, info fs.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+backupInfix+"*.tmp")
	if err != nil {
		return fmt.Errorf("nothing can be written to its directory: %w: let this user write there", cli.Reason(err))
	}
	temporary := f.Name()
	if err := fill(f, content, info); err != nil {
		return errors.Join(cli.Reason(err), remove(temporary))
	}
	if there, err := os.ReadFile(target); err != nil || !bytes.Equal(there, old) {
		return errors.Join(errChanged, remove(temporary)) // no need to show readers ours
	}
	if err := install(temporary, target, old, content, exchange); err != nil {
		return err
	}
	syncDirectory(filepath.Dir(target))
	return nil
}

// install gives temporary, which has content in it, the name target, if that has
// old in it. Nothing is left under the name temporary but what another program may
// have written. swap is [exchange].
func install(temporary, target string, old, content []byte, swap func(a, b string) error) error {
	err := exchangeFor(temporary, target, old, content, swap)
	switch {
	case err == nil:
		return remove(temporary)
	case errors.Is(err, errChanged):
		return errors.Join(err, remove(temporary))
	case errors.Is(err, errors.ErrUnsupported):
		err = robustio.Rename(temporary, target)
		if robustio.IsEphemeralError(err) && !errors.Is(err, fs.ErrNotExist) { // Windows replaces no open file
			err = fmt.Errorf("%w: close the program that has it open", cli.Reason(err))
		}
	}
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("it cannot be replaced: %w", cli.Reason(err)), removeOwn(temporary, content))
}

// removeOwn deletes temporary if it has content, which is attache's own. After a failed exchange
// it may be another program's file.
func removeOwn(temporary string, content []byte) error {
	there, err := os.ReadFile(temporary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || !bytes.Equal(there, content):
		return fmt.Errorf("what was in it is in %s", temporary)
	}
	return remove(temporary)
}

// exchangeFor puts temporary, which has content in it, in the place of target, if
// that has old in it, and otherwise leaves there what another program has written
// last. It looks at what it got out: that shows what was written up to the moment
// of the exchange. The error is [errors.ErrUnsupported] if nothing could be
// exchanged; where that is for another reason, renaming will tell it.
func exchangeFor(temporary, target string, old, content []byte, swap func(a, b string) error) error {
	in, out := content, old
	for first := true; ; first = false {
		err := swap(temporary, target)
		switch {
		case err != nil && first:
			return errors.ErrUnsupported
		case err != nil:
			return err
		}
		got, err := os.ReadFile(temporary)
		switch {
		case err != nil:
			return err
		case bytes.Equal(got, out) && first:
			return nil
		case bytes.Equal(got, out):
			return errChanged
		}
		// Another program was faster: back with its content, for our own.
		in, out = got, in
	}
}

// fill writes content to f, gives it the mode and owner of the file that info is
// of, and closes it when all of it is on the disk.
func fill(f *os.File, content []byte, info fs.FileInfo) error {
	_, err := f.Write(content)
	return errors.Join(err, keepOwner(f, info), f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
}

// remove deletes a file that was made here.
func remove(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("%s is left behind: %w", path, cli.Reason(err))
	}
	return nil
}

// Backups returns the directory for backups of the file at path: attache's own in
// stateDir, and the file's where the user has no such directory.
func Backups(stateDir, path string) string {
	if stateDir == "" {
		return filepath.Dir(path)
	}
	return filepath.Join(stateDir, "attache", "backups")
}

// backupName returns what the names of the backups of target begin with. Files of
// one name in several directories have backups of their own.
func backupName(target string) string {
	sum := sha256.Sum256([]byte(target))
	return filepath.Base(target) + "-" + hex.EncodeToString(sum[:4]) + backupInfix
}

// DropBackups removes from dir the backups of target in which there is nothing more
// than in target itself: those that hold the same, and those that bare makes the
// same. It returns the others.
func DropBackups(dir, target string, bare func(content []byte) []byte) (left []string, err error) {
	content, _, err := Load(target)
	if err != nil {
		return nil, err
	}
	for _, path := range backupsOf(dir, target) {
		kept, _, failed := Load(path)
		if failed == nil && (bytes.Equal(kept, content) || bytes.Equal(bare(kept), content)) {
			err = errors.Join(err, remove(path))
		} else {
			left = append(left, path)
		}
	}
	return left, err
}

// backupsOf returns the backups in dir that were made of target.
func backupsOf(dir, target string) []string {
	entries, _ := os.ReadDir(dir)
	var all []string
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(e.Name(), backupName(target))
		if ok && strings.HasSuffix(stamp, ".bak") && e.Type().IsRegular() {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}
