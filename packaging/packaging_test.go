// Package packaging has the files from which a release is made. These tests check that they agree.
package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/attache-mcp/attache/internal/testkit"
)

// root is the path of the repository.
const root = ".."

// releaser has the parts of .goreleaser.yaml that these tests read.
type releaser struct {
	Builds []struct {
		Flags, Ldflags, Goos, Goarch []string
	}
	Nfpms []struct {
		Contents []struct{ Src string }
	}
	Casks []struct {
		Manpages []string
	} `yaml:"homebrew_casks"`
	Dockers []struct {
		Dockerfile string
		Platforms  []string
	} `yaml:"dockers_v2"`
}

// target is a system and a processor with their names in Go.
type target struct{ goos, goarch string }

var check = testkit.Check

func readReleaser(t *testing.T) releaser {
	t.Helper()
	var r releaser
	check(t, yaml.Unmarshal(read(t, ".goreleaser.yaml"), &r))
	if len(r.Builds) != 1 || len(r.Nfpms) != 1 || len(r.Casks) != 1 || len(r.Dockers) != 1 {
		t.Fatalf(".goreleaser.yaml has %d builds, %d nfpms, %d homebrew_casks, %d dockers_v2, want one of each", len(r.Builds), len(r.Nfpms), len(r.Casks), len(r.Dockers))
	}
	return r
}

// targets returns the systems and processors of the builds.
func (r releaser) targets() (all []target) {
	for _, goos := range r.Builds[0].Goos {
		for _, goarch := range r.Builds[0].Goarch {
			all = append(all, target{goos, goarch})
		}
	}
	return all
}

// description has the parts of a package.json that these tests read.
type description struct {
	Name, Version        string
	Bin                  map[string]string
	OS, CPU              []string
	OptionalDependencies map[string]string
	Scripts              map[string]string
}

func describe(t *testing.T, file string) description {
	t.Helper()
	data, err := os.ReadFile(file)
	check(t, err)
	var d description
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return d
}

// npmName returns the npm package with the binary for a target.
func npmName(to target) string {
	systems := map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}
	processors := map[string]string{"amd64": "x64", "arm64": "arm64"}
	return "@attache-mcp/" + systems[to.goos] + "-" + processors[to.goarch]
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	check(t, err)
	return data
}

// The targets of the builds are those of the npm packages and of the images.
func TestTargets(t *testing.T) {
	r := readReleaser(t)
	launcher := describe(t, "npm/attache-mcp/package.json")
	want := map[string]string{}
	var images []string
	for _, to := range r.targets() {
		want[npmName(to)] = launcher.Version
		if to.goos == "linux" {
			images = append(images, to.goos+"/"+to.goarch)
		}
	}
	if len(want) != 6 {
		t.Errorf("%d targets, want six", len(want))
	}
	for name, version := range want {
		if got := launcher.OptionalDependencies[name]; got != version {
			t.Errorf("attache-mcp depends on %s in version %q, want its own, %q", name, got, version)
		}
	}
	if len(launcher.OptionalDependencies) != len(want) {
		t.Errorf("attache-mcp depends on %v, and only %v is built", launcher.OptionalDependencies, want)
	}
	if len(launcher.Scripts) > 0 {
		t.Errorf("attache-mcp runs %v; nothing is to run at install", launcher.Scripts)
	}
	if got := r.Dockers[0].Platforms; !slices.Equal(got, images) {
		t.Errorf("images are made for %v, want %v", got, images)
	}
}

// Each file that a package takes from the repository exists, or packaging/generate makes it.
func TestPackagedFiles(t *testing.T) {
	r := readReleaser(t)
	generate := string(read(t, "packaging/generate"))
	files := []string{r.Dockers[0].Dockerfile}
	for _, c := range r.Nfpms[0].Contents {
		files = append(files, c.Src)
	}
	for _, file := range files {
		if made, ok := strings.CutPrefix(file, "build/"); ok {
			dir, _, _ := strings.Cut(made, "/")
			if !strings.Contains(generate, "build/"+dir) {
				t.Errorf("packaging/generate does not make %s", file)
			}
		} else if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}
}

// docs/install.md repeats a build with the flags of the release.
func TestDocsRepeatTheBuild(t *testing.T) {
	build := readReleaser(t).Builds[0]
	if len(build.Ldflags) != 1 {
		t.Fatalf("%d texts of ldflags, want one", len(build.Ldflags))
	}
	ldflags := strings.NewReplacer("v{{ .Version }}", "$version", "{{ .FullCommit }}", "$commit", "{{ .CommitDate }}", "$date").Replace(build.Ldflags[0])
	want := "go build " + strings.Join(build.Flags, " ") + ` -ldflags "` + ldflags + `" -o attache ./cmd/attache`
	if !strings.Contains(string(read(t, "docs/install.md")), want) {
		t.Errorf("docs/install.md does not say how the build is repeated:\n%s", want)
	}
}

// Every command has a man page with its usage, and no page mentions a command that only builds have.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "-tags", "man", "./cmd/attache", "man", dir)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1000000000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	var names []string
	for _, file := range pages {
		names = append(names, "man/"+filepath.Base(file)+".gz")
		data, err := os.ReadFile(file)
		check(t, err)
		for _, want := range []string{`.TH "ATTACHE`, `"Sep 2001"`, ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS", "--help"} {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s has no %s", filepath.Base(file), want)
			}
		}
		if regexp.MustCompile(`attache(-| )man\b|Auto generated`).Match(data) {
			t.Errorf("%s speaks of what only builds have", filepath.Base(file))
		}
	}
	casks := slices.Sorted(slices.Values(readReleaser(t).Casks[0].Manpages))
	if slices.Sort(names); !slices.Equal(casks, names) {
		t.Errorf("homebrew_casks of .goreleaser.yaml has the pages\n%v, want\n%v", casks, names)
	}
	first, err := os.ReadFile(filepath.Join(dir, "attache.1"))
	check(t, err)
	for _, want := range []string{"[flags] -- COMMAND [ARG...]", ".SH ENVIRONMENT", ".SH EXIT STATUS", "--workspace PATH"} {
		if !strings.Contains(string(first), want) {
			t.Errorf("attache.1 has no %q", want)
		}
	}
}
