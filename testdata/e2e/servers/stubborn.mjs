// A server that answers initialize and then does not exit: it ignores the end of its
// stdin and every signal that can be ignored.
import { createInterface } from 'node:readline';

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPIPE']) process.on(signal, () => {});
process.stdout.on('error', () => {});
setInterval(() => {}, 1 << 30);
createInterface({ input: process.stdin }).on('line', line => {
    const { id, method, params } = JSON.parse(line);
    if (method !== 'initialize') return;
    const result = { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: 'stubborn', version: '1.0.0' } };
    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n');
});
