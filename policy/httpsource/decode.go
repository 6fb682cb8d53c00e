package httpsource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/policy"
)

// decode parses an answer. Its errors quote nothing of the answer, because an endpoint may send
// the credential back.
func decode(body []byte) (policy.Effective, error) {
	if !utf8.Valid(body) {
		return policy.Effective{}, errors.New("it is not UTF-8")
	}
	// Many servers write null for an empty list.
	var policies []json.RawMessage
	var objectives []string
	seen, err := members(body, map[string]any{"policies": &policies, "objectives": &objectives})
	if err != nil {
		return policy.Effective{}, err
	}
	if len(seen) == 0 {
		return policy.Effective{}, errors.New("it has neither policies nor objectives")
	}
	var effective policy.Effective
	for i, raw := range policies {
		p, err := decodePolicy(raw)
		if err != nil {
			return policy.Effective{}, fmt.Errorf("policy %d: %w", i+1, err)
		}
		effective.Policies = append(effective.Policies, p)
	}
	for i, o := range objectives {
		if strings.TrimSpace(o) == "" {
			return policy.Effective{}, fmt.Errorf("objective %d is empty", i+1)
		}
		effective.Objectives = append(effective.Objectives, o)
	}
	return effective, nil
}

func decodePolicy(raw []byte) (policy.Policy, error) {
	var p policy.Policy
	_, err := members(raw, map[string]any{
		"name": &p.Name, "position": &p.Position, "text": &p.Text, "inherited": &p.Inherited,
	})
	switch {
	case err != nil:
		return policy.Policy{}, err
	case strings.TrimSpace(p.Name) == "" || strings.TrimSpace(p.Text) == "":
		return policy.Policy{}, errors.New("it has no name or no text")
	case !p.Position.Valid():
		return policy.Policy{}, errors.New("its position is neither prepend nor append")
	}
	return p, nil
}

// members decodes the members of the object in raw into the variables in known and returns
// their names. It matches names exactly and refuses duplicates: decoding into a struct would
// also accept "Name" for "name", and use the last of two equal members.
func members(raw []byte, known map[string]any) (seen map[string]bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	seen = make(map[string]bool)
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, errors.New("it is not JSON")
		}
		name, _ := token.(string)
		into, ok := known[name]
		if !ok || seen[name] {
			return nil, errors.New("it has a member that is not known, or one twice")
		}
		seen[name] = true
		if err := decoder.Decode(into); err != nil {
			return nil, errors.New(name + " is not of the right type")
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("it is not JSON")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	return seen, nil
}
