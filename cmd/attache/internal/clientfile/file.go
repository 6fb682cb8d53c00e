// Package clientfile reads and replaces the configuration files of MCP clients.
//
// [Update] is the only function that writes such a file. It makes a backup, replaces the file in
// one step, keeps its mode and owner, and never overwrites a change that another program made in
// the meantime. It does not touch a file that it cannot read or that keeps changing.
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

// MaxFile is the maximum size of a configuration file in bytes. Claude Code also stores other data
// in its file, which can grow to tens of megabytes.
const MaxFile = 256 << 20

// attempts is how often [Update] tries to edit a file that keeps changing. Claude Code, for example,
// writes its file every few seconds.
const attempts = 5

// backupInfix precedes the time in the name of a backup.
const backupInfix = ".attache-"

// An UpdateResult reports what [Update] did.
type UpdateResult struct {
	// Path is the path of the file itself, with links resolved.
	Path string
	// Backup is the path of the backup, empty if nothing was written.
	Backup string
}

// errChanged is returned by replace if the file is no longer the one that was read.
var errChanged = errors.New("it changed while it was being edited: try again, with the client closed")

// errOwner is returned for a file of another user, to whom only root can give a new file.
var errOwner = errors.New("it belongs to another user, and its replacement would not: edit it as its owner")

// Load reads a client's file and resolves links. It returns the content and the path of the file
// itself. The error is [fs.ErrNotExist] if there is no such file.
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

// Update replaces the content of the file at path with the result of edit. It does nothing if edit
// returns the same content. Before that it writes a backup to the directory backups, which it
// creates if necessary; next to the file, the backup could end up in the user's repository. The new
// file replaces the old one in one step and keeps its mode and owner, so a reader always finds a
// complete file.
//
// If another program writes the file in the meantime, Update calls edit again with the new content.
// If the system can exchange two files in one step (Linux, macOS), no such write is lost. On other
// systems, a write between the last check and the replacement is lost.
func Update(path, backups string, now time.Time, edit func(content []byte) ([]byte, error)) (UpdateResult, error) {
	for attempt := 1; ; attempt++ {
		done, err := updateOnce(path, backups, now, edit)
		if errors.Is(err, errChanged) && attempt < attempts {
			continue
		}
		return done, err
	}
}

// Preview calls edit with the content of the file at path and writes nothing. If the content would change, it
// returns the error of [Update] for a file that must not be replaced.
func Preview(path string, edit func(content []byte) ([]byte, error)) error {
	old, info, target, err := load(path)
	if err != nil {
		return err
	}
	content, err := edit(old)
	if err != nil || bytes.Equal(content, old) {
		return err
	}
	return replaceable(target, info)
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

// replaceable returns an error if the file must not be replaced, even if the directory allows it.
func replaceable(target string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("it is read-only: allow writing (chmod u+w %q), or edit it with the program that manages it", target)
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

// writeBackup saves old, the content of target, in a new file in dir and returns its path.
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
		switch err := fill(f, old, info); {
		case errors.Is(err, errOwner):
			return "", errors.Join(err, remove(path))
		case err != nil:
			return "", errors.Join(fmt.Errorf("no backup can be written: %w: make room for one", cli.Reason(err)), remove(path))
		}
		return path, nil
	}
}

// replace replaces target with a file that holds content, if target still holds old.
func replace(target string, old, content []byte, info fs.FileInfo) error {
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+backupInfix+"*.tmp")
	if err != nil {
		return fmt.Errorf("nothing can be written to its directory: %w: let this user write there", cli.Reason(err))
	}
	temporary := f.Name()
	if err := fill(f, content, info); err != nil {
		return errors.Join(fmt.Errorf("its new content cannot be written: %w: make room for it", cli.Reason(err)), remove(temporary))
	}
	if current, err := os.ReadFile(target); err != nil || !bytes.Equal(current, old) {
		return errors.Join(errChanged, remove(temporary)) // readers need not see our file even for a moment
	}
	if err := install(temporary, target, old, content, exchange); err != nil {
		return err
	}
	textfile.SyncDirectory(filepath.Dir(target))
	return nil
}

// install renames temporary, which holds content, to target, if target holds old. Afterwards
// temporary no longer exists, unless it holds something that another program wrote. swap is
// [exchange], except in tests.
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

// removeOwn deletes temporary if it holds content, which attache wrote. After a failed exchange it
// may hold what another program wrote.
func removeOwn(temporary string, content []byte) error {
	current, err := os.ReadFile(temporary)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || !bytes.Equal(current, content):
		return fmt.Errorf("its previous content is in %s", temporary)
	}
	return remove(temporary)
}

// exchangeFor exchanges temporary, which holds content, with target, if target holds old. Otherwise
// it leaves in target what another program wrote last. It compares the file that it received in
// exchange, which includes every write up to the exchange. The error is [errors.ErrUnsupported] if
// the first exchange failed for any reason; the caller then renames the file, and gets the actual
// error if that fails too.
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
		// Another program was faster: put its content back.
		in, out = got, in
	}
}

// fill writes content to f, gives f the mode and owner in info, and syncs and closes it.
func fill(f *os.File, content []byte, info fs.FileInfo) error {
	_, err := f.Write(content)
	mode, owned := keepOwner(f, info)
	if errors.Is(owned, fs.ErrPermission) {
		owned = errOwner
	}
	return errors.Join(err, owned, f.Chmod(mode), f.Sync(), f.Close())
}

// remove deletes a file that this package created.
func remove(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("%s is left behind: %w", path, cli.Reason(err))
	}
	return nil
}

// Backups returns the directory for backups of the file at path: attache's directory in stateDir,
// or the directory of the file if stateDir is empty.
func Backups(stateDir, path string) string {
	if stateDir == "" {
		return filepath.Dir(path)
	}
	return filepath.Join(stateDir, "attache", "backups")
}

// backupName returns the prefix of the names of target's backups. It differs for files with the
// same name in different directories.
func backupName(target string) string {
	sum := sha256.Sum256([]byte(target))
	return filepath.Base(target) + "-" + hex.EncodeToString(sum[:4]) + backupInfix
}

// DropBackups removes the backups of target in dir that hold nothing that target lacks: those with
// the same content, and those whose content bare turns into it. It returns the others.
func DropBackups(dir, target string, bare func(content []byte) []byte) (left []string, err error) {
	content, _, err := Load(target)
	if err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		stamp, ok := strings.CutPrefix(e.Name(), backupName(target))
		if !ok || !strings.HasSuffix(stamp, ".bak") || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		backup, _, loadErr := Load(path)
		if loadErr == nil && (bytes.Equal(backup, content) || bytes.Equal(bare(backup), content)) {
			err = errors.Join(err, remove(path))
		} else {
			left = append(left, path)
		}
	}
	return left, err
}
