//go:build unix

// Package pgtest starts PostgreSQL for tests: a cluster in a temporary directory, which is
// reached by a socket there alone, and which ends with the process of the test however that
// ends.
package pgtest

import (
	"bufio"
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// A Cluster is a PostgreSQL server of its own. It does not wait for the disk.
type Cluster struct {
	t   testing.TB
	dir string
	bin string
	as  *syscall.Credential // nil for the user of the test
	run *running
	n   atomic.Int64 // databases made
}

// running is one life of the server.
type running struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// keeper is the script that keeps the server: it ends it when its stdin ends.
//
//go:embed keeper.sh
var keeper string

// New starts a cluster to the end of the test. Where PostgreSQL is not installed the test is
// skipped, but with CI=true it fails. getenv is os.Getenv.
func New(t testing.TB, getenv func(string) string) *Cluster {
	t.Helper()
	bin := find(getenv)
	if bin == "" {
		const what = "initdb is not found: install PostgreSQL (Debian: postgresql) to test the shared store"
		if getenv("CI") == "true" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	c := &Cluster{t: t, bin: bin, as: unprivileged(t)}
	var err error
	if c.dir, err = os.MkdirTemp("", "attache-pg-"); err != nil { // short: a socket is in it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.dir) })
	if c.as != nil {
		if err := os.Chown(c.dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	c.Start()
	t.Cleanup(func() { c.stop("") })
	c.exec("postgres", `CREATE ROLE attache LOGIN`)
	return c
}

// find returns the directory of PostgreSQL's programs, "" if there is none.
func find(getenv func(string) string) string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if dir := getenv("PGBIN"); dir != "" {
		all = append(all, filepath.Join(dir, "initdb"))
	}
	if len(all) == 0 {
		return ""
	}
	return filepath.Dir(all[len(all)-1])
}

// unprivileged returns whom PostgreSQL runs as where the test is root, for whom it refuses to.
func unprivileged(t testing.TB) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("PostgreSQL does not run as root, and there is no user postgres or nobody")
	return nil
}

// Start starts the server, which was killed or did not run yet, and waits until it answers.
func (c *Cluster) Start() {
	c.t.Helper()
	var ready bool
	if c.run, ready = c.keep(keeper, c.bin, c.dir); !ready {
		log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
		c.t.Fatalf("PostgreSQL did not start:\n%s", log)
	}
}

// keep runs a script that runs a server until the script's input ends, and waits until the
// server answers. ready says whether it does.
func (c *Cluster) keep(script string, args ...string) (r *running, ready bool) {
	c.t.Helper()
	cmd := c.command("sh", append([]string{"-c", script, "keeper"}, args...)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	return &running{cmd, stdin}, err == nil && line == "ready\n"
}

// command returns a command that runs as the user of the cluster, apart from the signals of a
// terminal.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/local/bin:/usr/sbin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.as}
	return cmd
}

// stop ends the server and waits for its end. The word says how: see keeper.sh.
func (c *Cluster) stop(word string) {
	if c.run == nil {
		return
	}
	c.run.end(word)
	c.run = nil
}

// end ends a server and waits for its end.
func (r *running) end(word string) {
	_, _ = io.WriteString(r.stdin, word)
	_ = r.stdin.Close()
	_ = r.cmd.Wait()
}

// Kill kills the server with SIGKILL.
func (c *Cluster) Kill() { c.stop("kill\n") }

// Database makes an empty database, and returns its URL for a role that owns it and has no
// other rights.
func (c *Cluster) Database() string {
	c.t.Helper()
	name := fmt.Sprintf("d%d", c.n.Add(1))
	c.exec("postgres", `CREATE DATABASE `+name+` OWNER attache`)
	return c.URL(name, "attache")
}

// Copy makes a copy of a database, which nobody uses, and returns its URL as Database does.
func (c *Cluster) Copy(of string) string {
	c.t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		c.t.Fatal(err)
	}
	name := fmt.Sprintf("d%d", c.n.Add(1))
	c.exec("postgres", `CREATE DATABASE `+name+` OWNER attache TEMPLATE `+filepath.Base(u.Path))
	return c.URL(name, "attache")
}

// Socket returns the path of the socket of the server.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// Dir returns the directory of the socket, which the user of the cluster can write to.
func (c *Cluster) Dir() string { return c.dir }

// URL returns the URL of a database for a role. The role postgres may do everything.
func (c *Cluster) URL(database, role string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{"host": {c.dir}, "user": {role}}.Encode()}
	return u.String()
}

// exec runs a statement as the administrator.
func (c *Cluster) exec(database, statement string) {
	c.t.Helper()
	db, err := sql.Open("pgx", c.URL(database, "postgres"))
	if err == nil {
		_, err = db.ExecContext(context.Background(), statement)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	_ = db.Close()
}
