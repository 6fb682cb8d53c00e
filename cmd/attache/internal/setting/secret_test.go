package setting

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/testkit"
)

func TestSecretFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for content, want := range map[string]string{"s3cret": "s3cret", " s3cret\r\n": "s3cret", "\ufeffs3cret\n": "s3cret"} {
		testkit.Check(t, os.WriteFile(path, []byte(content), 0o600))
		if got, err := (Secret{File: path}).Value(cli.Process{}); got != want || err != nil {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
}

// A file that others can read, that is too long or that holds no secret is refused, and the error shows nothing of it.
func TestSecretFileRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for _, test := range []struct {
		content string
		mode    os.FileMode
	}{{"s3cret", 0o640}, {"s3cret", 0o604}, {"s3cret", 0o620}, {strings.Repeat("s3cret ", 20_000), 0o600}, {"s3\ncret", 0o600}, {" \n", 0o600}} {
		if test.mode != 0o600 && runtime.GOOS == "windows" {
			continue // its files have no such modes
		}
		testkit.Check(t, os.WriteFile(path, []byte(test.content), 0o600))
		testkit.Check(t, os.Chmod(path, test.mode))
		if _, err := (Secret{File: path}).Value(cli.Process{}); err == nil || strings.Contains(err.Error(), "s3") {
			t.Errorf("%.20q with mode %v: %v", test.content, test.mode, err)
		}
		testkit.Check(t, os.Remove(path))
	}
}

// White space around a secret in a variable is not part of it, and one that no header could hold is refused
// without being shown.
func TestSecretVariable(t *testing.T) {
	for value, want := range map[string]string{
		"s3cret": "s3cret", " s3cret\n": "s3cret", "a\tb c~": "a\tb c~", "é": "é",
		"": "", " \t": "", "s3\ncret": "", "s3\rcret": "", "s3\x1fcret": "", "s3\x7fcret": "", "s3\x00cret": "",
	} {
		got, err := Secret{Env: "V"}.Value(cli.Process{Env: []string{"V=" + value}})
		if (err == nil) != (want != "") || err == nil && got != want || err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: %q, %v", value, got, err)
		}
		if err := CheckSecret(value); want == "" && err == nil {
			t.Errorf("%q is accepted", value)
		}
	}
}

// A token in place of the name of its variable is refused, also if it has the characters of a name: as a name it would be
// in errors, which clients see.
func TestTokenVariable(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "TEAM_KEY": true, "token": true, "MY_VERY_LONG_NAME_OF_A_VARIABLE_2": true, "the_name_of_a_long_variable_too": true,
		"mcp_server_oauth2_access_token": true, "TF_VAR_github_mcp_v2_access_token_1": true, "githubEnterpriseOauth2AccessToken": true,
		"Z9z": true, "TOKEN4PRODUCTION2SERVERS4EVERYONE": true, "9Z": false, "a[": false, "a{": false, "a:": false, "a@": false,
		"a-token": false, "two words": false, "atk_ab12_" + strings.Repeat("x7", 16): false, "ghp_" + strings.Repeat("Ab9", 12): false,
	} {
		if err := TokenVariable(text); (err == nil) != want || err != nil && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
