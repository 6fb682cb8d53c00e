package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// A wrapJob is one run of wrap or unwrap.
type wrapJob struct {
	*program
	unwrap bool

	all     bool
	clients []string
	files   []string
	project string
	servers []string
	dryRun  bool
	command string
	npx     bool
	repair  bool
	flags   config.Flags // what goes into the entries

	report bytes.Buffer // for stdout
	failed []string     // files that could not be edited, for stderr
	reread []string     // what makes the clients notice
}

// wrapCommand puts attache in front of the servers of a client.
func (c *program) wrapCommand() *cobra.Command {
	job := &wrapJob{program: c}
	return job.cobra(&cobra.Command{
		Use:   "wrap [flags]",
		Short: "Put attache in front of the servers in clients' configuration files",
		Long: `Puts attache in front of the servers that a client starts: the server's command
moves behind "--" in its arguments, and nothing else in the file changes. A backup
is kept in attache's state directory. "attache unwrap" restores the file byte for byte.

Flags of attache (--config, --workspace, --session and so on) go into the wrapped
entries, in front of the "--".

Remote servers are passed over, and so are those that attache is in front of
already. Servers that are switched off stay so.`,
		Example: `  attache wrap --all --dry-run               see what would change in the files of all clients
  attache wrap --all                         put attache in front of every server of yours
  attache wrap --client cursor               of one client: ` + strings.Join(clientNames(), ", ") + `
  attache wrap --client zed --server git     in front of one server
  attache wrap --all --workspace /src/shop   with a flag of attache in each entry
  attache wrap --all --repair                attache has moved: start it from where it is now
  attache wrap --project .                   in the files of a project that clients read
  attache wrap --file ./mcp.json             in any file`,
	})
}

// unwrapCommand takes attache out again.
func (c *program) unwrapCommand() *cobra.Command {
	job := &wrapJob{program: c, unwrap: true}
	return job.cobra(&cobra.Command{
		Use:   "unwrap [flags]",
		Short: "Take attache out of clients' configuration files again",
		Long: `Takes attache out from in front of the servers of a client. Where nobody has
edited an entry since "attache wrap", its bytes are those that were there before;
the rest of the file stays as it is. Backups that hold nothing more than the file
then does are removed.`,
		Example: `  attache unwrap --all                       take attache out of the files of all clients
  attache unwrap --client cursor --dry-run   see what would change
  attache unwrap --file ./mcp.json --server git`,
	})
}

// cobra gives cmd the flags of the job and has it do the job.
func (j *wrapJob) cobra(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&j.all, "all", false, "the files of all clients that are there")
	f.StringArrayVar(&j.clients, "client", nil, "the files of the client `NAME`: "+strings.Join(clientNames(), ", ")+"; may be repeated")
	f.StringVar(&j.project, "project", "", "the clients' files of the project in `DIR`, instead of the user's")
	f.StringArrayVar(&j.files, "file", nil, "this `FILE`: JSON, with comments or without, or TOML; may be repeated")
	f.StringArrayVar(&j.servers, "server", nil, "only the server `NAME`; may be repeated")
	f.BoolVar(&j.dryRun, "dry-run", false, "show what would change, and change nothing")
	f.StringVar(&j.command, "command", "", "the `PATH` or name that clients start attache by; default: where it is, or its name in the files of a project")
	if !j.unwrap {
		f.BoolVar(&j.npx, "npx", false, "have clients start attache by npx, which installs it where it is missing")
		f.BoolVar(&j.repair, "repair", false, "in the entries that start attache already, replace how it is started; its flags stay")
		j.flags = config.AddFlags(cmd)
	}
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(clientNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return j.run(cmd.Flags())
	}
	return cmd
}

// clientNames returns what the clients are called on the command line.
func clientNames() []string {
	var names []string
	for _, c := range clientconfig.Clients() {
		names = append(names, c.Name)
	}
	return names
}

// run does the job.
func (j *wrapJob) run(flags *pflag.FlagSet) error {
	for _, f := range []struct{ name, value string }{{"project", j.project}, {"command", j.command}} {
		if flags.Changed(f.name) && f.value == "" {
			return cli.Usagef("--%s is empty: was it a variable that is not set?", f.name)
		}
	}
	if j.npx && j.command != "" {
		return cli.Usagef("--npx and --command exclude each other: keep one")
	}
	if carried, err := j.flags.Carry(false); err != nil || j.repair && len(carried) > 0 {
		return cmp.Or(err, cli.Usagef("--repair keeps the flags that are in the entries: leave out %s", carriedName(carried)))
	}
	files, err := j.targets()
	if err != nil {
		return err
	}
	if err := j.serversExist(files); err != nil {
		return err
	}
	for _, f := range files {
		if err := j.edit(f); err != nil {
			j.failed = append(j.failed, fmt.Sprintf("attache: %s: %v\n", strings.Map(cli.Printable, f.Path), err))
		}
	}
	j.tellWhatNext()
	// Written when all files are: a closed stdout may end the process, and must not
	// leave some files edited and others not.
	_, err = j.Stdout.Write(j.report.Bytes())
	for _, text := range j.failed {
		fmt.Fprint(j.Stderr, text)
	}
	if j.failed != nil {
		return cli.ExitError(cli.ExitFailure)
	}
	return err
}

// targets returns the files that the flags name.
func (j *wrapJob) targets() ([]clientconfig.File, error) {
	clients, err := j.chosenClients()
	if err != nil {
		return nil, err
	}
	if j.all && len(clients) > 0 {
		return nil, cli.Usagef("--all is every client: leave out --client, or --all")
	}
	var files []clientconfig.File
	if len(j.files) > 0 {
		if len(clients) > 1 || j.all || j.project != "" {
			return nil, cli.Usagef("--file names the files: leave out --all and --project, and give --client at most once")
		}
		for _, path := range j.files {
			if path == "" {
				return nil, cli.Usagef("--file: the file's name is empty: was it a variable that is not set?")
			}
			f := clientconfig.File{Path: path}
			if len(clients) == 1 {
				f.Client = clients[0]
			}
			files = append(files, f)
		}
		return files, nil
	}
	if j.project == "" && clientconfig.ThisSystem(j.Getenv).Home == "" {
		return nil, cli.Usagef("the home directory is not known: set %s, or name a file with --file", clientconfig.HomeVariable())
	}
	if len(clients) == 0 && !j.all && j.project == "" {
		return nil, j.which()
	}
	looked := j.clientFiles(clients)
	there := false
	for _, f := range looked {
		if _, err := os.Lstat(f.Path); err != nil {
			continue
		}
		there = true
		if d, err := clientconfig.Open(f); err != nil || len(d.Entries) > 0 {
			files = append(files, f)
		}
	}
	switch {
	case !there:
		return nil, fmt.Errorf("no configuration file of a client is there: looked for %s; name another with --file", strings.Join(pathsOf(looked), ", "))
	case files == nil:
		return nil, errors.New("no servers are in the clients' configuration files: add one in the client first")
	}
	return files, nil
}

// chosenClients returns the clients that are named.
func (j *wrapJob) chosenClients() ([]*clientconfig.Client, error) {
	var chosen []*clientconfig.Client
	for _, name := range j.clients {
		to, err := config.OneOf(name, clientNames())
		if err != nil {
			return nil, cli.Usagef("--client: %v; or name its file with --file", err)
		}
		for _, c := range clientconfig.Clients() {
			if c.Name == to {
				chosen = append(chosen, &c)
			}
		}
	}
	return chosen, nil
}

// clientFiles returns the files of the clients, of all if none are named.
func (j *wrapJob) clientFiles(clients []*clientconfig.Client) []clientconfig.File {
	if clients == nil {
		for _, c := range clientconfig.Clients() {
			clients = append(clients, &c)
		}
	}
	var files []clientconfig.File
	for _, c := range clients {
		if j.project != "" {
			files = append(files, clientconfig.ThisSystem(j.Getenv).ProjectFiles(c, j.project)...)
		} else {
			files = append(files, clientconfig.ThisSystem(j.Getenv).UserFiles(c)...)
		}
	}
	return files
}

func pathsOf(files []clientconfig.File) []string {
	var all []string
	for _, f := range files {
		all = append(all, strings.Map(cli.Printable, f.Path))
	}
	return all
}

// absolutePath returns path as an absolute one, or as it is where that is not known.
func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// carriedName names the first of the flags.
func carriedName(carried []string) string {
	if len(carried) == 0 {
		return ""
	}
	return carried[0]
}

// which asks for the clients that are meant, telling which there are.
func (j *wrapJob) which() error {
	word := "wrap"
	if j.unwrap {
		word = "unwrap"
	}
	var there []string
	for _, f := range j.clientFiles(nil) {
		if d, err := clientconfig.Open(f); err == nil && len(d.Entries) > 0 {
			there = append(there, fmt.Sprintf("%s (%d servers)", f.Client.Name, len(d.Entries)))
		}
	}
	if there == nil {
		return cli.Usagef("which file? no client's file with servers was found: name one with --file, or a project with --project")
	}
	return cli.Usagef("which client? found %s: name one as in \"attache %s --client %s\", or all with \"attache %s --all\"; --dry-run shows what would change",
		strings.Join(there, ", "), word, strings.Fields(there[0])[0], word)
}

// serversExist refuses names of servers that no file has. Files that cannot be
// read are told of when they are edited.
func (j *wrapJob) serversExist(files []clientconfig.File) error {
	if len(j.servers) == 0 {
		return nil
	}
	var names []string
	for _, f := range files {
		d, err := clientconfig.Open(f)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Map(cli.Printable, f.Path), err)
		}
		for _, e := range d.Entries {
			names = append(names, e.Name)
		}
	}
	for _, name := range j.servers {
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
func (j *wrapJob) edit(f clientconfig.File) error {
	shared := j.project != "" || clientconfig.ThisSystem(j.Getenv).Shared(absolutePath(f.Path))
	launch, err := j.launch(shared)
	if err != nil {
		return err
	}
	if launch.Flags, err = j.flags.Carry(shared); err != nil {
		return err
	}
	var doc *clientconfig.Document
	var plan *clientconfig.Plan
	change := func(content []byte) (_ []byte, err error) {
		if doc, err = clientconfig.Read(f, content); err != nil {
			return nil, err
		}
		switch {
		case j.unwrap:
			plan = doc.Unwrap(launch, j.chosen)
		case j.repair:
			plan = doc.Repair(launch, j.chosen)
		default:
			plan = doc.Wrap(launch, j.chosen)
		}
		return plan.Content, nil
	}
	done, err := j.apply(f.Path, change)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file: correct the path")
	case err != nil:
		return err
	}
	j.tell(f, plan, doc.Warnings)
	if done.Backup != "" {
		return j.tellBackup(f, launch, done)
	}
	return nil
}

// apply makes the change to the file at path, or in a dry run only finds out what
// it would be.
func (j *wrapJob) apply(path string, change func([]byte) ([]byte, error)) (clientconfig.Updated, error) {
	if !j.dryRun {
		return clientconfig.Update(path, backupDirectory(j.Process, path), time.Now(), change)
	}
	content, _, err := clientconfig.Load(path)
	if err == nil {
		_, err = change(content)
	}
	return clientconfig.Updated{}, err
}

// backupDirectory returns the directory for backups of the file at path: attache's own,
// and only where the user has none the file's.
func backupDirectory(p cli.Process, path string) string {
	if p.StateDir == "" {
		return filepath.Dir(path)
	}
	return filepath.Join(p.StateDir, "attache", "backups")
}

// chosen reports whether the server is one of those that are meant.
func (j *wrapJob) chosen(name string) bool {
	return len(j.servers) == 0 || slices.Contains(j.servers, name)
}

// launch returns how clients are to start attache. Programs with windows do not
// have the search path of a shell, so by default it is a path. A shared file gets the
// name: a path of this machine is wrong on others.
func (j *wrapJob) launch(shared bool) (clientconfig.Launch, error) {
	switch {
	case j.command != "":
		return clientconfig.Launch{Command: j.command}, nil
	case j.npx:
		return npxLaunch(), nil
	case shared:
		return clientconfig.Launch{Command: "attache"}, nil
	}
	path, err := os.Executable()
	if err != nil {
		return clientconfig.Launch{}, fmt.Errorf("where attache is cannot be found out: %w: say it with --command", err)
	}
	if strings.Contains(filepath.ToSlash(path), "/_npx/") {
		return npxLaunch(), nil // npx clears that directory as it likes
	}
	if onPath, found := j.searchPath(path); found {
		path = onPath // a package manager's link stays where it is when the version changes
	}
	if !utf8.ValidString(path) {
		return clientconfig.Launch{}, fmt.Errorf("attache is in %q, which no configuration can name: move it, or give --command", path)
	}
	return clientconfig.Launch{Command: path}, nil
}

// npxLaunch starts attache's npm package. On Windows npx is a script, which not
// every client starts.
func npxLaunch() clientconfig.Launch {
	args := []string{"-y", clientconfig.Package}
	if runtime.GOOS == "windows" {
		return clientconfig.Launch{Command: "cmd", Args: append([]string{"/c", "npx"}, args...)}
	}
	return clientconfig.Launch{Command: "npx", Args: args}
}

// searchPath returns where in the search path the program at path is found by its
// name.
func (j *wrapJob) searchPath(path string) (string, bool) {
	this, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	name := "attache"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(j.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		there := filepath.Join(dir, name)
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			return there, os.SameFile(this, info) // the first one is what a shell starts
		}
	}
	return "", false
}
