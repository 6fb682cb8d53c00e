package assembly

import (
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/announce"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy"
)

// Restart returns the options for restarting a server that ends during the session, nil if it must not be
// restarted. The relay calls the functions in the options from its own goroutines.
func (c *Conn) Restart() *proxy.Restart {
	s := c.Settings()
	o := s.Server.Restart
	if o.On == "never" {
		return nil
	}
	r := &proxy.Restart{
		Name:   s.Server.Name,
		Hold:   o.Hold,
		Hang:   o.Hang,
		Notice: o.Notice,
		// A reload may change dry_run. It does not change the other values.
		Quiet:     func() bool { return c.Settings().DryRun },
		Changed:   c.listChanged,
		Restarted: c.restarted,
	}
	if len(o.Retry) > 0 {
		r.Retry = func(tool string) bool {
			// A call that may have run is sent again only if the operator has named its tool, so an error means no.
			matches, err := glob.Match(o.Retry, tool)
			return matches && err == nil
		}
	}
	return r
}

// restarted records that the server was started again.
func (c *Conn) restarted(exit string, lost int, down time.Duration) {
	if c.audit != nil {
		c.audit.ServerRestarted(exit, lost, down)
	}
	c.shared.Load().Telemetry.ServerRestarted()
}

// listChanged makes the layers forget a list of the server that has ended, and notifies the client
// that the list has changed. It records the change, because a tool with an old name and a new
// meaning may be an attack.
func (c *Conn) listChanged(method, before, after string) {
	if c.audit != nil {
		c.audit.ListChanged(method, before, after)
	}
	// Forget the catalogue before the client is notified: the client asks for the new list at once, and rules
	// read the catalogue.
	c.catalog.Forget()
	for _, l := range []announce.List{announce.Tools, announce.Prompts, announce.Resources} {
		if strings.HasPrefix(method, string(l)+"/") {
			c.notify([]announce.List{l})
		}
	}
}
