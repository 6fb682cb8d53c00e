package packaging

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// A manifest has the parts of a document of kubernetes.yaml that these tests read.
type manifest struct {
	Data map[string]string
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int          `yaml:"terminationGracePeriodSeconds"`
				Security   podSecurity  `yaml:"securityContext"`
				Init       []*container `yaml:"initContainers"`
				Containers []*container
			}
		}
	}
}

type podSecurity struct {
	NonRoot bool                  `yaml:"runAsNonRoot"`
	Seccomp struct{ Type string } `yaml:"seccompProfile"`
}

type container struct {
	Security struct {
		Escalation   *bool                   `yaml:"allowPrivilegeEscalation"`
		Capabilities struct{ Drop []string } `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Lifecycle struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
}

// A namespace of the level "restricted" (Pod Security Standards) accepts the pods. A pod serves until the
// Service has left it, and has the time for serve.drain then.
func TestKubernetes(t *testing.T) {
	var drain time.Duration
	var pods int
	for d := yaml.NewDecoder(bytes.NewReader(read(t, "packaging/kubernetes.yaml"))); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if text := m.Data["config.yaml"]; text != "" {
			var c struct{ Serve struct{ Drain string } }
			check(t, yaml.Unmarshal([]byte(text), &c))
			var err error
			drain, err = time.ParseDuration(c.Serve.Drain)
			check(t, err)
		}
		p := &m.Spec.Template.Spec
		if len(p.Containers) == 0 {
			continue
		}
		pods++
		if !p.Security.NonRoot || p.Security.Seccomp.Type != "RuntimeDefault" {
			t.Errorf("the pod has securityContext %+v", p.Security)
		}
		for _, c := range append(p.Init, p.Containers...) {
			s := &c.Security
			if s.Escalation == nil || *s.Escalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("a container has securityContext %+v", *s)
			}
		}
		stop := p.Containers[0].Lifecycle.PreStop.Sleep.Seconds
		if left := p.Grace - stop; stop == 0 || time.Duration(left)*time.Second <= drain {
			t.Errorf("preStop waits %d s, and leaves %d s for a drain of %s", stop, left, drain)
		}
	}
	if pods != 1 || drain == 0 {
		t.Errorf("%d pods, a drain of %s", pods, drain)
	}
}
