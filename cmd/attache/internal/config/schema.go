package config

import "github.com/attache-mcp/attache/cmd/attache/internal/setting"

// Schema returns the JSON Schema of the configuration file. It is generated from the options, so it
// has the same keys as the reader.
func Schema() map[string]any {
	root := setting.Section("attache configuration", Options(DefaultSettings(""))...)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	properties := root["properties"].(map[string]any)
	properties["servers"], properties["include"] = serverSchema(), includeSchema()
	return root
}

// serverSchema returns the JSON Schema of the section servers.
func serverSchema() map[string]any {
	entry := setting.Section("settings for one server", DefaultSettings("").serverOptions()...)
	removeDefaults(entry)
	match := setting.Section("how the server is recognised; without it, by its name", new(Match).options()...)
	entry["properties"].(map[string]any)["match"] = match
	entry["type"], match["type"] = "object", "object" // unlike a section of the file, they must not be empty
	return map[string]any{
		"description":          "settings for single servers; the rest of the file is for all servers",
		"type":                 []string{"object", "null"},
		"additionalProperties": entry,
	}
}

// removeDefaults removes the defaults of the keys of s, which are the values for all servers. Those
// of the entries of a list stay.
func removeDefaults(s map[string]any) {
	delete(s, "default")
	properties, _ := s["properties"].(map[string]any)
	for _, property := range properties {
		removeDefaults(property.(map[string]any))
	}
}

func includeSchema() map[string]any {
	word := map[string]any{"type": "string", "minLength": 1}
	return map[string]any{
		"description": "more configuration files: their rules come after those of this file, and their other keys apply where this file has none; a path, or an https address with the digest of its content or the public key (minisign) that signs it",
		"type":        []string{"array", "null"},
		"items": map[string]any{"anyOf": []any{word, map[string]any{
			"type":                 "object",
			"properties":           map[string]any{"url": word, "digest": word, "key": word},
			"required":             []string{"url"},
			"additionalProperties": false,
		}}},
	}
}
