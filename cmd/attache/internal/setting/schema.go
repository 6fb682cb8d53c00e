package setting

import (
	"strconv"
	"strings"
)

// Section returns the JSON Schema of a section with these options and no others. A dot in a key
// makes a nested section.
func Section(title string, options ...Option) map[string]any {
	root := emptySection(title)
	for _, o := range options {
		if o.Key == "" {
			continue
		}
		at, names := root, strings.Split(o.Key, ".")
		for _, name := range names[:len(names)-1] {
			at = subsection(at, name)
		}
		at["properties"].(map[string]any)[names[len(names)-1]] = described(o)
	}
	return root
}

func emptySection(title string) map[string]any {
	return map[string]any{
		"title":                title,
		"type":                 []string{"object", "null"},
		"properties":           map[string]any{},
		"additionalProperties": false,
	}
}

// subsection returns the section of that name in at, and adds it if it is missing.
func subsection(at map[string]any, name string) map[string]any {
	properties := at["properties"].(map[string]any)
	if properties[name] == nil {
		properties[name] = emptySection(name)
	}
	return properties[name].(map[string]any)
}

// described returns the schema of o with its help and its default.
func described(o Option) map[string]any {
	s := o.Value.Schema()
	if value := defaultOf(o.Value, s); value != nil {
		s["default"] = value
	}
	help := o.Help
	if more, ok := s["description"].(string); ok {
		help += "; " + more
	}
	s["description"] = help
	return s
}

// defaultOf returns the default of v, which has that schema, if it is a text, number, boolean or
// list of texts. Otherwise, and if there is none, it returns nil.
func defaultOf(v Value, schema map[string]any) any {
	if words, ok := v.(Words); ok && len(*words.To) > 0 {
		return *words.To
	}
	text := v.String()
	if _, ok := v.(Scalar); !ok || text == "" {
		return nil
	}
	switch schema["type"] {
	case "boolean":
		return text == "true"
	case "integer":
		n, err := strconv.Atoi(text)
		if least, _ := schema["minimum"].(int); err != nil || n < least {
			return nil
		}
		return n
	default:
		return text
	}
}
