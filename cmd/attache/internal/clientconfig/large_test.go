package clientconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/clientfile"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// Files over 10 MB work, in linear time.
func TestLargeFile(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"history": ["` + strings.Repeat("x", 11<<20) + `"], "mcpServers": {`)
	for i := range 2000 {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString(`"s` + strings.Repeat("i", i%50) + `": {"command": "npx", "args": ["-y", "server"]}`)
	}
	b.WriteString("}}")
	path := filepath.Join(t.TempDir(), "mcp.json")
	check(t, os.WriteFile(path, b.Bytes(), 0o600))
	file := mcpclient.File{Path: path}
	wrap := func(content []byte) ([]byte, error) {
		d, err := Read(file, content)
		if err != nil {
			return nil, err
		}
		return d.Wrap(Launch{Command: "attache"}, all).Content, nil
	}
	if _, err := clientfile.Update(path, filepath.Dir(path), time.Unix(0, 0), wrap); err != nil {
		t.Fatal(err)
	}
	content, _, err := clientfile.Load(path)
	check(t, err)
	d := mustRead(t, file, content)
	if n := bytes.Count(content, []byte(`"--"`)); n != 2000 {
		t.Errorf("%d servers are wrapped", n)
	}
	if got := d.Unwrap(Launch{Command: "attache"}, all).Content; !bytes.Equal(got, b.Bytes()) {
		t.Error("not restored")
	}
}
