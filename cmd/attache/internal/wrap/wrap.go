// Package wrap puts attache in front of the servers in the configuration files of
// clients, takes it out again, and reports what it did to each server.
//
// Package clientconfig finds and edits the servers of one file. This package decides
// which files and servers are meant, how clients are to start attache, and what
// people are told.
package wrap

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientfile"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// A Job is one run of wrap or unwrap.
type Job struct {
	cli.Process
	// Unwrap takes attache out.
	Unwrap bool

	// All, Clients and Project name the clients' files, Files single ones.
	All     bool
	Clients []string
	Files   []string
	Project string
	// Servers are the names of the servers that are meant, all if there are none.
	Servers []string
	// DryRun shows what would change, and changes nothing.
	DryRun bool
	// Command is the program with which clients start attache. If it is empty, Run finds it.
	Command string
	// NPX has clients start attache by npx.
	NPX bool
	// Repair replaces how attache is started in the entries that start it already.
	Repair bool
	// Teams adds attache's own server for teams.
	Teams bool
	// Flags are attache's own, which go into the entries.
	Flags setting.Flags

	report  bytes.Buffer // for stdout
	notes   []string     // on the flags
	changes bool         // whether a file changes, or would
	reread  []string     // what makes the clients read their files again
}

// Run does the job.
func (j *Job) Run() error {
	carried, err := j.Flags.Args(config.Options(config.DefaultSettings("")), false)
	switch {
	case err != nil:
		return err
	case j.Repair && len(carried) > 0:
		return cli.Usagef("--repair keeps the flags that are in the entries: leave out %s", carried[0])
	}
	files, err := j.targets()
	if err != nil {
		return err
	}
	if err := j.checkServers(files); err != nil {
		return err
	}
	if err := j.checkFlags(carried, files); err != nil {
		return err
	}
	var failures []string
	for _, f := range files {
		if err := j.edit(f); err != nil {
			failures = append(failures, fmt.Sprintf("attache: %s: %v\n", cli.Printable(f.Path), err))
		}
	}
	j.reportNext()
	// Write the report last: a closed stdout may end the process, and must not leave some files
	// edited and others not.
	_, err = j.Stdout.Write(j.report.Bytes())
	for _, text := range failures {
		fmt.Fprint(j.Stderr, text)
	}
	if failures != nil {
		return cli.ExitError(cli.ExitFailure)
	}
	return err
}

// checkServers refuses names of servers that no file has.
func (j *Job) checkServers(files []clientconfig.File) error {
	if len(j.Servers) == 0 {
		return nil
	}
	var names []string
	for _, f := range files {
		d, err := clientconfig.Open(f)
		if err != nil {
			return fmt.Errorf("%s: %w", cli.Printable(f.Path), err)
		}
		for _, e := range d.Entries {
			names = append(names, e.Name)
		}
	}
	for _, name := range j.Servers {
		if slices.Contains(names, name) {
			continue
		}
		if near := cli.Nearest(name, names); near != "" {
			return cli.Usagef("--server: there is no server %q: did you mean %q?", name, near)
		}
		slices.Sort(names)
		return cli.Usagef("--server: there is no server %q: there are %s", name, cli.Quoted(slices.Compact(names)))
	}
	return nil
}

// edit edits one file, or shows how.
func (j *Job) edit(f clientconfig.File) error {
	shared := j.shared(f.Path)
	launch, err := j.launch(shared)
	if err != nil {
		return err
	}
	if launch.Flags, err = j.Flags.Args(config.Options(config.DefaultSettings("")), shared); err != nil {
		return err
	}
	var doc *clientconfig.Document
	var plan *clientconfig.Plan
	done, err := j.apply(f.Path, func(content []byte) (_ []byte, err error) {
		if doc, err = clientconfig.Read(f, content); err != nil {
			return nil, err
		}
		switch {
		case j.Unwrap:
			plan = doc.Unwrap(launch, j.chosen)
			if j.chosen(clientconfig.TeamsServer) {
				doc.RemoveTeams(plan, f)
			}
		case j.Repair:
			plan = doc.Repair(launch, j.chosen)
		default:
			plan = doc.Wrap(launch, j.chosen)
			if j.Teams {
				doc.AddTeams(plan, f, launch)
			}
		}
		return plan.Content, nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file: correct the path")
	case err != nil:
		return err
	}
	j.reportFile(f, plan, doc.Warnings)
	if done.Backup != "" {
		return j.reportBackup(f, launch, done)
	}
	return nil
}

// apply makes the change to the file at path, or in a dry run only finds out what
// it would be.
func (j *Job) apply(path string, change func([]byte) ([]byte, error)) (clientfile.UpdateResult, error) {
	if !j.DryRun {
		return clientfile.Update(path, clientfile.Backups(j.StateDir, path), time.Now(), change)
	}
	content, _, err := clientfile.Load(path)
	if err == nil {
		_, err = change(content)
	}
	return clientfile.UpdateResult{}, err
}

// chosen reports whether the server is one of those that are meant.
func (j *Job) chosen(name string) bool {
	return len(j.Servers) == 0 || slices.Contains(j.Servers, name)
}
