//go:build unix

package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
)

// bouncerKeeper ends pgbouncer when its stdin ends. $1 is the program, $2 its configuration.
const bouncerKeeper = `"$1" "$2" >/dev/null 2>&1 & pid=$!
until [ -S "$3" ]; do kill -0 $pid || exit 1; sleep 0.05; done
echo ready
exec >/dev/null
read -r word
kill -KILL $pid`

// Bouncer starts a pgbouncer in transaction mode before the cluster, to the end of the test,
// and returns what the URL of a database is over it. It has fewer connections to the server
// than its clients have to it. Where there is no pgbouncer the test is skipped, but with
// CI=true it fails.
func (c *Cluster) Bouncer(getenv func(string) string) func(database string) string {
	c.t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		const what = "pgbouncer is not found: install it (Debian: pgbouncer) to test the shared store behind it"
		if getenv("CI") == "true" {
			c.t.Fatal(what)
		}
		c.t.Skip(what)
	}
	users, file, socket := filepath.Join(c.dir, "users"), filepath.Join(c.dir, "pgbouncer.ini"), filepath.Join(c.dir, ".s.PGSQL.6432")
	c.write(users, `"attache" ""`+"\n")
	c.write(file, fmt.Sprintf(`[databases]
* = host=%[1]s port=5432
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = %[1]s
auth_type = trust
auth_file = %[2]s
pool_mode = transaction
default_pool_size = 2
max_client_conn = 1000
`, c.dir, users))
	run, ready := c.keep(bouncerKeeper, program, file, socket)
	c.t.Cleanup(func() { run.end("") })
	if !ready {
		c.t.Fatal("pgbouncer did not start")
	}
	return func(database string) string {
		u, err := url.Parse(database)
		if err != nil {
			c.t.Fatal(err)
		}
		q := u.Query()
		q.Set("port", "6432")
		u.RawQuery = q.Encode()
		return u.String()
	}
}

// write writes a file that the user of the cluster can read.
func (c *Cluster) write(path, text string) {
	c.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}
