package main

import "testing"

// A configuration that is read again gives nobody a fresh bucket.
func TestReloadKeepsRates(t *testing.T) {
	const rates = "access:\n  rates: [{tools: ['*'], per: session, limit: 1/hour}]\n"
	r := newReloading(t, rates)
	r.begin()
	r.passes(r.Client, r.Server, callDrop)
	r.passes(r.Server, r.Client, dropped)
	r.change("config.yaml", rates+"  rules: [{tools: [other], deny: true}]\n", `keys=access.rules`)
	r.Client.Expect(toolsChanged)
	r.Client.Send(callDrop)
	r.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Rate limit reached: try again in 3600 seconds"}],"isError":true}}`)
}
