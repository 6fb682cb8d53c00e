// Shows how JavaScript reads frames that attache has forwarded. It reads arrays of frames
// from stdin, one array a line, and answers each with an array of the calls and reads that
// violate ../../hostile/readers.yaml.
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { deserializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';

const attempt = (f) => { try { return f() } catch { return undefined } };
const decoded = (s) => attempt(() => decodeURIComponent(s)) ?? s;

// kept keeps what f returns: frames repeat the same few names and URIs.
function kept(f) {
  const results = new Map();
  return (s) => {
    if (!results.has(s)) {
      if (results.size >= 1024) results.clear();
      results.set(s, f(s));
    }
    return results.get(s);
  };
}

const cleaned = (k) => k.replace(/[\p{Cf}\p{Cc}]/gu, '').trim();

// How servers compare names and methods: exactly, trimmed, cleaned or case-folded.
const looseners = [
  (k) => k, (k) => k.trim(), cleaned, (k) => k.toLowerCase(), (k) => k.toUpperCase().toLowerCase(),
  (k) => k.toLocaleLowerCase('tr'), (k) => cleaned(k).toLowerCase(), (k) => cleaned(k).toUpperCase().toLowerCase(),
].map(kept);

// copy copies like a handler that merges options: to JSON.parse, __proto__ is a member, and
// assigning it sets the prototype of the copy.
function copy(v) {
  if (Array.isArray(v)) return v.map(copy);
  if (v === null || typeof v !== 'object') return v;
  const to = {};
  for (const k in v) to[k] = copy(v[k]);
  return to;
}

const isObject = (v) => v !== null && typeof v === 'object';

// found returns the values of the members that a server would find under a name.
const found = (o, name, loose) => isObject(o) ? Object.keys(o).filter((k) => loose(k) === name).map((k) => o[k]) : [];

function* loosely(message, loose) {
  for (const method of found(message, 'method', loose)) {
    if (typeof method !== 'string') continue;
    for (const params of found(message, 'params', loose)) {
      const names = found(params, 'name', loose);
      switch (loose(method)) {
        case 'tools/call':
          if (names.includes('drop')) yield 'calls drop';
          for (const args of found(params, 'arguments', loose)) {
            if (found(args, 'force', loose).length) yield 'sees force';
            if (found(args, 'options', loose).some((o) => found(o, 'force', loose).length)) yield 'sees options.force';
            if (found(args, 'tenant', loose).some((t) => t !== 'acme')) yield 'sees another tenant';
          }
          break;
        case 'prompts/get':
          if (names.includes('secret_plan')) yield 'gets a hidden prompt';
          break;
        case 'resources/read': case 'resources/subscribe': case 'resources/unsubscribe':
          for (const uri of found(params, 'uri', loose)) if (typeof uri === 'string' && isSecret(uri)) yield 'reads ' + uri;
      }
    }
  }
}

function* copied(message) {
  const { method, params } = copy(message) ?? {};
  const args = params?.arguments;
  if (method === 'tools/call') {
    if (params?.name === 'drop') yield 'calls drop';
    if (isObject(args) && 'force' in args) yield 'inherits force';
    if (isObject(args?.options) && 'force' in args.options) yield 'inherits options.force';
    if (typeof params?.name === 'string' && args?.tenant !== 'acme') yield 'inherits another tenant';
  }
  if (method === 'resources/read' && typeof params?.uri === 'string' && isSecret(params.uri)) yield 'inherits ' + params.uri;
}

// isSecret reports whether some way to parse uri leads to a hidden resource.
const isSecret = kept((uri) => {
  const urls = [() => new URL(uri), () => new URL(decoded(uri)), () => new URL(uri.trim()), () => new URL(uri, 'file:///')];
  for (const url of urls.map(attempt)) {
    if (url && [url.pathname, decoded(url.pathname), decoded(decoded(url.pathname))].some((p) => hidden(url, p))) return true;
    const file = url && attempt(() => fileURLToPath(url));
    if (file && under(file, '/secret/')) return true;
  }
  const [, scheme, rest] = /^([^:]*):\/\/(.*)$/s.exec(uri) ?? [];
  return [rest, decoded(rest)].some((p) => p !== undefined && (scheme === 'file' && under(p, '/secret/') || scheme === 'note' && under(p, '/team/secret/')));
});

const under = (p, root) => path.posix.normalize('/' + p).toLowerCase().startsWith(root);

function hidden(url, p) {
  switch (url.protocol) {
    case 'file:': return under(p, '/secret/');
    case 'https:': return url.hostname === 'api.example' && url.port === '' && under(p, '/secret/');
    case 'http:': return url.hostname === 'docs.example' && url.port === '' && under(p, '/secret/');
    case 'note:': return under(decoded(url.hostname) + '/' + p, '/team/secret/');
  }
  return false;
}

// The SDK's server looks up a resource by its normalised URI first, and then by templates.
let ran = [];
const server = new McpServer({ name: 'reader', version: '1' });
const answer = (uri) => ({ contents: [{ uri: uri.href, text: '' }] });
for (const uri of ['file:///secret/plan', 'https://api.example/secret/plan', 'note://Team/secret/plan', 'http://docs.example/Secret/plan']) {
  server.registerResource(uri, uri, {}, (at) => { ran.push('the SDK reads ' + uri); return answer(at) });
}
for (const [root, template] of [['/secret/', 'file:///{+path}'], ['/secret/', 'https://api.example/{+path}'], ['/secret/', 'note://Team/{dir}/{id}'], ['/secret/', 'note://Team/{id}']]) {
  server.registerResource(template, new ResourceTemplate(template, { list: undefined }), {}, (at, values) => {
    const text = Object.values(values).join('/');
    if (under(text, root) || under(decoded(text), root)) ran.push('the SDK reads ' + text + ' by ' + template);
    return answer(at);
  });
}
server.registerTool('drop', {}, () => { ran.push('the SDK calls drop'); return { content: [] } });
server.registerPrompt('secret_plan', {}, () => { ran.push('the SDK gets a hidden prompt'); return { messages: [] } });
const transport = { start: async () => {}, close: async () => {}, send: async () => {} };
await server.connect(transport);

async function sdk(frame) {
  ran = [];
  const message = attempt(() => deserializeMessage(frame));
  if (message) {
    transport.onmessage(message);
    await new Promise(setImmediate);
  }
  return ran;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const out = [];
  for (const frame of JSON.parse(line)) {
    const value = attempt(() => JSON.parse(frame));
    for (const message of Array.isArray(value) ? value : [value]) {
      for (const loose of looseners) out.push(...loosely(message, loose));
      out.push(...copied(message));
    }
    out.push(...await sdk(frame));
  }
  process.stdout.write(JSON.stringify([...new Set(out)]) + '\n');
}
