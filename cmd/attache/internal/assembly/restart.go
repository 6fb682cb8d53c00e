package assembly

import (
	"slices"

	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy"
)

// Restart returns how a server that ends is started again under the client, nil if it is
// not.
func (c *Conn) Restart() *proxy.Restart {
	s := c.Settings()
	o := s.Server.Restart
	if o.On == "never" {
		return nil
	}
	r := &proxy.Restart{Name: s.Server.Name, Hold: o.Hold, Hang: o.Hang, Notice: o.Notice && !s.DryRun, Changed: c.listsChanged}
	if len(o.Retry) > 0 {
		r.Retry = func(tool string) bool {
			matches, err := glob.Match(o.Retry, tool)
			return matches && err == nil
		}
	}
	return r
}

// listsChanged has the layers forget what a server listed that has ended, and tells the
// client that the lists have changed.
func (c *Conn) listsChanged(names []string) {
	c.catalog.Forget()
	var lists []announce.List
	for _, l := range []announce.List{announce.Tools, announce.Prompts, announce.Resources} {
		if slices.Contains(names, string(l)) {
			lists = append(lists, l)
		}
	}
	c.tell(lists)
}
