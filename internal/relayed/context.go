package relayed

import "context"

type callKey struct{}

// A Context carries the call of the frame being handled. Package proxy creates
// one for each direction and sets Call before each frame, so that handling a
// frame does not allocate a context.
type Context struct {
	context.Context
	Call *Call
}

// Value implements context.Context.
func (c *Context) Value(key any) any {
	if key == (callKey{}) {
		return c.Call
	}
	return c.Context.Value(key)
}

// From returns the call in ctx, or nil.
func From(ctx context.Context) *Call {
	if c, ok := ctx.(*Context); ok {
		return c.Call
	}
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}
