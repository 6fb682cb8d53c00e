package setting

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Flags are the values of command-line flags, by the name of the flag. They are not checked until
// the settings are loaded, so that all mistakes are reported at once.
type Flags map[string]*flag

// FileFlag is the flag that names the configuration file.
const FileFlag = "config"

// NewFlags adds --config to cmd, whose help then lists flags in the order in which they were added.
func NewFlags(cmd *cobra.Command) Flags {
	cmd.Flags().SortFlags = false
	flags := Flags{}
	flags.Add(cmd, FileFlag, "FILE", "configuration file, instead of attache/config.yaml in the user's configuration directory")
	return flags
}

// AddFlags adds --config and the flags of options to cmd. It skips flags that cmd already has and
// flags that belong to another command.
func AddFlags(cmd *cobra.Command, options []Option) Flags {
	flags := NewFlags(cmd)
	for _, o := range options {
		if o.Flag == "" || o.Command != "" && o.Command != cmd.Name() || cmd.Flags().Lookup(o.Flag) != nil {
			continue
		}
		flags.Add(cmd, o.Flag, o.Hint, o.Help)
		if words, ok := o.Value.Schema()["enum"].([]string); ok {
			_ = cmd.RegisterFlagCompletionFunc(o.Flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return flags
}

// Add adds one flag to cmd. A flag without a hint is a switch without a value.
func (f Flags) Add(cmd *cobra.Command, name, hint, help string) {
	v := &flag{hint: hint}
	f[name] = v
	added := cmd.Flags().VarPF(v, name, "", help)
	if hint == "" {
		added.NoOptDefVal = "true"
	}
}

// Get returns the value of a flag, "" if it is not on the command line.
func (f Flags) Get(name string) (string, error) {
	v := f[name]
	if v == nil || len(v.values) == 0 {
		return "", nil
	}
	if len(v.values) > 1 {
		return "", errors.New("given " + strconv.Itoa(len(v.values)) + " times: give it once")
	}
	return v.values[0], nil
}

// Has reports whether a flag is on the command line, even with an empty value.
func (f Flags) Has(name string) bool {
	v := f[name]
	return v != nil && len(v.values) > 0
}

// Args returns the flags on the command line that are options or --config, for the entry of a
// server in a client's configuration file. It makes relative paths absolute, because the client
// starts attache in another directory, but not in a shared file, because other machines have other
// directories. It does not change a value that contains a variable of the client, such as
// ${workspaceFolder}.
func (f Flags) Args(options []Option, shared bool) ([]string, error) {
	var problems Problems
	var args []string
	carry := func(name string, v Scalar) {
		text, err := f.Get(name)
		if err == nil && !f.Has(name) {
			return
		}
		if err == nil && text == "" {
			err = errors.New("the value is empty: was it a variable that is not set?")
		}
		if err == nil && !strings.Contains(text, "${") {
			if err = v.Set(text, ""); !shared {
				text = v.String()
			}
		}
		if err != nil {
			problems.Add(Origin{Name: "--" + name}, "%v", err)
		}
		args = append(args, "--"+name, text)
	}
	var path string
	carry(FileFlag, Path(&path))
	for _, o := range options {
		if v, ok := o.Value.(Scalar); ok && o.Flag != "" {
			carry(o.Flag, v)
		}
	}
	return args, problems.Err()
}

// A flag holds all values given for one flag.
type flag struct {
	hint   string
	values []string
}

// String returns "", because the help text has the defaults.
func (v *flag) String() string { return "" }

// Set adds a value.
func (v *flag) Set(s string) error {
	v.values = append(v.values, s)
	return nil
}

// Type returns the placeholder for the value in the help.
func (v *flag) Type() string {
	return cmp.Or(v.hint, "bool")
}
