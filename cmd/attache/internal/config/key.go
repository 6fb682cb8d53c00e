package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// APIKeyVariable holds the session's API key. It never reaches the server.
const APIKeyVariable = setting.Prefix + "_API_KEY"

// APIKey returns the session's API key and its origin, or an empty key if there is none. The flag
// --api-key-file takes precedence over ATTACHE_API_KEY, and that over ATTACHE_API_KEY_FILE and the
// configuration file. The error is [setting.Problems] and never contains the key.
func APIKey(p cli.Process, s *Settings) (policy.Credential, setting.Origin, error) {
	file := s.Origin("identity.api_key_file")
	if key := strings.TrimSpace(p.Getenv(APIKeyVariable)); key != "" && file.Name != "--api-key-file" {
		return policy.Credential(key), setting.Origin{Name: APIKeyVariable}, nil
	}
	if s.APIKeyFile == "" {
		return "", setting.Origin{}, nil
	}
	key, err := readKeyFile(s.APIKeyFile)
	if err != nil {
		return "", file, setting.Problems{{At: file, Text: fmt.Sprintf("%s: %v", s.APIKeyFile, err)}}
	}
	return policy.Credential(key), file, nil
}

// readKeyFile returns the only word in the file.
func readKeyFile(path string) (string, error) {
	data, _, err := textfile.Read(path, textfile.Rules{Max: 4096, Closed: 0o077})
	var system *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("there is no such file: correct the path")
	case errors.As(err, &system):
		return "", fmt.Errorf("%w: correct the path or its permissions", system.Err)
	case errors.Is(err, textfile.ErrTooLarge), errors.Is(err, textfile.ErrDirectory):
		return "", fmt.Errorf("%w: name a file with the key, and nothing else, in it", err)
	case err != nil:
		return "", err
	}
	if !utf8.Valid(data) { // PowerShell's > writes UTF-16
		return "", errors.New("is not UTF-8 text: save it as UTF-8")
	}
	words := strings.Fields(string(textfile.TrimMark(data)))
	if len(words) != 1 {
		return "", fmt.Errorf("has %d words in it: write the key, and nothing else, in it", len(words))
	}
	return words[0], nil
}

// notKey returns an error if s is a key and not the path of a file. The error does not contain s.
func notKey(s string) error {
	if id := KeyID(s); id != s && len(s)-strings.LastIndexByte(s, '_') > 32 && !strings.ContainsAny(s, "/.") {
		return fmt.Errorf("is a key and not a file that holds one: give the key itself in %s", APIKeyVariable)
	}
	return nil
}

// KeyID returns the id in arg if arg is a whole key, so that an error does not print its secret.
// Otherwise it returns arg.
func KeyID(arg string) string {
	if parts := strings.Split(arg, "_"); len(parts) > 2 {
		return parts[len(parts)-2]
	}
	return arg
}
