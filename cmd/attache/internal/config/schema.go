package config

import (
	"strings"
)

// Schema returns the JSON Schema of the configuration file. It is made of
// the options, so it cannot know other keys than the reader.
func Schema() map[string]any {
	root := section("attache configuration")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	for _, o := range Options(DefaultSettings("")) {
		if o.Key == "" {
			continue
		}
		addOption(root, o)
	}
	properties := root["properties"].(map[string]any)
	properties["servers"], properties["include"] = serverSchema(), includeSchema()
	return root
}

// addOption adds the schema of o to that of a section, in the subsections of its key.
func addOption(at map[string]any, o option) {
	names := strings.Split(o.Key, ".")
	for _, name := range names[:len(names)-1] {
		at = subsection(at, name)
	}
	at["properties"].(map[string]any)[names[len(names)-1]] = described(o)
}

// section returns the schema of a section without keys.
func section(title string) map[string]any {
	return map[string]any{
		"title":                title,
		"type":                 []string{"object", "null"},
		"properties":           map[string]any{},
		"additionalProperties": false,
	}
}

// subsection returns the section name within at, made if it is not there.
func subsection(at map[string]any, name string) map[string]any {
	properties := at["properties"].(map[string]any)
	if properties[name] == nil {
		properties[name] = section(name)
	}
	return properties[name].(map[string]any)
}

// described returns the schema of o with its help.
func described(o option) map[string]any {
	s := o.value.schema()
	help := o.Help
	if more, ok := s["description"].(string); ok {
		help += "; " + more
	}
	s["description"] = help
	return s
}
