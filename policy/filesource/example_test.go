package filesource_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attache-mcp/attache/policy/filesource"
)

func ExampleCheck() {
	dir, err := os.MkdirTemp("", "policies")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	const text = `scope: acme/platform
parent: acme
policys:
  - {name: security-review, position: append, text: Flag any credential handling.}
`
	if err := os.WriteFile(filepath.Join(dir, "platform.yaml"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	for _, problem := range filesource.Check(dir) {
		fmt.Println(strings.TrimPrefix(problem.String(), dir+string(filepath.Separator)))
	}
	// Output:
	// platform.yaml:2:9: parent "acme" is not a scope here: add its file or correct the name
	// platform.yaml:3:1: unknown key "policys": write policies
}
