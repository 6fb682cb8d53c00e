// node cut.mjs URL: calls a slow tool over a connection that is cut after its second progress notification, with
// both lines of the TypeScript SDK. Prints the result and the progress that each has seen.
import net from 'node:net';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';

const target = new URL(process.argv[2]);
const connections = new Set();
const relay = net.createServer(client => {
    const server = net.connect(Number(target.port), target.hostname);
    for (const [from, to] of [[client, server], [server, client]]) {
        connections.add(from);
        from.on('error', () => {}).on('close', () => to.destroy()).pipe(to);
    }
});
await new Promise(resolve => relay.listen(0, '127.0.0.1', resolve));
const url = new URL(`http://127.0.0.1:${relay.address().port}${target.pathname}`);
const params = { name: 'trigger-long-running-operation', arguments: { duration: 2, steps: 4 } };

for (const [name, Client, Transport] of [['v1', ClientV1, TransportV1], ['v2', ClientV2, TransportV2]]) {
    const client = new Client({ name: 'attache-e2e', version: '1.0.0' }, { capabilities: {} });
    await client.connect(new Transport(url));
    const progress = [];
    const options = {
        onprogress: p => {
            if (progress.push(p.progress) === 2) {
                connections.forEach(socket => socket.destroy());
            }
        }
    };
    const result = await (name === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options));
    console.log(name, result.content[0].text, progress.join(' '));
    await client.close();
}
process.exit(0);
