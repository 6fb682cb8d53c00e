// Package pgserver starts PostgreSQL and pgbouncer for tests and measurements: a cluster in a
// temporary directory, which can be reached only through a socket there. It ends with the
// process that started it, even if that is killed.
package pgserver

import (
	"bufio"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// ErrMissing is returned if a program is not installed. Its text says which.
var ErrMissing = errors.New("a program is not installed")

// Options are the options of [New].
type Options struct {
	// Settings are arguments of the server: "-c name=value" for each.
	Settings string
	// Parent is the directory for that of the cluster, as in os.MkdirTemp.
	Parent string
}

// A Cluster is a PostgreSQL server with its own data directory.
type Cluster struct {
	o       Options
	dir     string
	bin     string
	attr    *syscall.SysProcAttr // of processes
	server  *process
	bouncer *process
	n       atomic.Int64 // number of databases made
}

// A process is a script that runs a server until its stdin ends.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// keeper is the script that runs PostgreSQL.
//
//go:embed keeper.sh
var keeper string

// New starts a cluster. [Cluster.Close] ends it and removes its files.
func New(o Options) (*Cluster, error) {
	c := &Cluster{o: o, bin: find()}
	if c.bin == "" {
		return nil, fmt.Errorf("%w: initdb is not found: install PostgreSQL (Debian: postgresql)", ErrMissing)
	}
	var err error
	if c.dir, err = os.MkdirTemp(o.Parent, "attache-pg-"); err != nil { // short, because it contains a socket
		return nil, err
	}
	if c.attr, err = attributes(c.dir); err == nil {
		err = c.Start()
	}
	if err == nil {
		err = c.exec("postgres", `CREATE ROLE attache LOGIN`)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the servers and removes the files of the cluster.
func (c *Cluster) Close() {
	if c.bouncer != nil {
		c.bouncer.end("")
	}
	c.stop("")
	_ = os.RemoveAll(c.dir)
}

// find returns the directory of PostgreSQL's programs, "" if there is none.
func find() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 {
		return ""
	}
	return filepath.Dir(all[len(all)-1])
}

// Start starts the server, for the first time or after Kill, and waits until it answers.
func (c *Cluster) Start() (err error) {
	if c.server, err = c.keep(keeper, c.bin, c.dir, c.o.Settings); err != nil {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		return fmt.Errorf("PostgreSQL did not start: %w\n%s", err, log)
	}
	return nil
}

// keep starts a script that runs a server, and waits until the server answers.
func (c *Cluster) keep(script string, args ...string) (*process, error) {
	cmd := exec.Command("sh", append([]string{"-c", script, "keeper"}, args...)...)
	cmd.Dir, cmd.SysProcAttr = c.dir, c.attr
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/local/bin:/usr/sbin", "LC_ALL=C"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	p := &process{cmd, stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil && line != "ready\n" {
		err = fmt.Errorf("its script printed %q", line)
	}
	if err != nil {
		p.end("")
		return nil, err
	}
	return p, nil
}

// stop ends the server, if it runs. For the word see keeper.sh.
func (c *Cluster) stop(word string) {
	if c.server == nil {
		return
	}
	c.server.end(word)
	c.server = nil
}

// end ends a server and waits until it has ended.
func (p *process) end(word string) {
	_, _ = io.WriteString(p.stdin, word)
	_ = p.stdin.Close()
	_ = p.cmd.Wait()
}

// Kill kills the server with SIGKILL.
func (c *Cluster) Kill() { c.stop("kill\n") }

// Database creates an empty database, and returns its URL for a role that owns it and has no
// other privileges.
func (c *Cluster) Database() (string, error) { return c.create("") }

// Copy copies a database that nobody is using, and returns the URL of the copy, like Database.
func (c *Cluster) Copy(of string) (string, error) { return c.create(" TEMPLATE " + nameIn(of)) }

func (c *Cluster) create(options string) (string, error) {
	name := fmt.Sprintf("d%d", c.n.Add(1))
	return c.URL(name, "attache"), c.exec("postgres", `CREATE DATABASE `+name+` OWNER attache`+options)
}

// Empty removes all rows from the tables of a database except those with the tables' versions.
func (c *Cluster) Empty(database string) error {
	return c.exec(nameIn(database), `DO $$ BEGIN EXECUTE coalesce((SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ')
		FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'attache_schema'), 'SELECT 1'); END $$`)
}

// nameIn returns the name of the database in a URL that Cluster.URL returned.
func nameIn(database string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(database, "postgres:///"), "?")
	return name
}

// Socket returns the path of the socket of the server.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// URL returns the URL of a database for a role. The role postgres is the administrator.
func (c *Cluster) URL(database, role string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{"host": {c.dir}, "user": {role}}.Encode()}
	return u.String()
}

// PID returns the id of the server's main process, whose children serve the connections.
func (c *Cluster) PID() (int, error) { return readPID(filepath.Join(c.dir, "data", "postmaster.pid")) }

// readPID returns the number in the first line of a file.
func readPID(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strconv.Atoi(line)
}

// Ask runs a query that returns one row as the administrator, and scans the row.
func (c *Cluster) Ask(database, query string, to ...any) error {
	return c.administrate(database, func(db *sql.DB) error { return db.QueryRowContext(context.Background(), query).Scan(to...) })
}

// exec runs a statement as the administrator.
func (c *Cluster) exec(database, statement string) error {
	return c.administrate(database, func(db *sql.DB) error {
		_, err := db.ExecContext(context.Background(), statement)
		return err
	})
}

func (c *Cluster) administrate(database string, f func(*sql.DB) error) error {
	db, err := sql.Open("pgx", c.URL(database, "postgres"))
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}
