// Package wrap puts attache in front of the servers in the configuration files of
// clients, takes it out again, and reports what it did to each server.
//
// Package clientconfig finds and edits the servers of one file. This package selects the files and
// servers, decides how clients start attache, and reports the result to the user.
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
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// A Job is one run of the wrap or unwrap command.
type Job struct {
	cli.Process
	// Unwrap removes attache from the entries.
	Unwrap bool

	// All, Clients and Project select the files of clients, and Files single files.
	All     bool
	Clients []string
	Files   []string
	Project string

	// Servers are the names of the servers to edit; empty for all.
	Servers []string

	// DryRun shows what would change, and changes nothing.
	DryRun bool

	// Command is the program with which clients start attache. If it is empty, Run finds it.
	Command string
	// NPX makes clients start attache with npx.
	NPX bool
	// Repair corrects how attache is started in the entries that already start it.
	Repair bool
	// Teams adds attache's server for teams.
	Teams bool

	// Flags are the flags of attache to write into the entries.
	Flags setting.Flags

	report  bytes.Buffer // for stdout
	notes   []string     // about the flags
	changes bool         // a file was changed, or would be
	reread  []string     // how to make each client read its file again
}

// Run runs the job and writes its report to stdout.
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

// checkServers returns an error if a name in j.Servers is in none of the files.
func (j *Job) checkServers(files []mcpclient.File) error {
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
		return cli.Usagef("--server: there is no server %q: choose %s", name, cli.Quoted(slices.Compact(names)))
	}
	return nil
}

// edit edits one file, or in a dry run only reports the changes.
func (j *Job) edit(f mcpclient.File) error {
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
	j.reportFile(f, plan, append(doc.Warnings, j.variableNotes(f, launch.Flags)...))
	if done.Backup != "" {
		return j.reportBackup(f, launch, done)
	}
	return nil
}

// apply applies change to the file at path. In a dry run it calls change and writes nothing.
func (j *Job) apply(path string, change func([]byte) ([]byte, error)) (clientfile.UpdateResult, error) {
	if !j.DryRun {
		return clientfile.Update(path, clientfile.Backups(j.StateDir, path), time.Now(), change)
	}
	return clientfile.UpdateResult{}, clientfile.Preview(path, change)
}

func (j *Job) chosen(name string) bool {
	return len(j.Servers) == 0 || slices.Contains(j.Servers, name)
}
