// server-filesystem uses the directory in E2E_DIR, which has the same files at
// the start of every run.
import { pathToFileURL } from 'node:url';

const dir = process.env.E2E_DIR;

/** Without roots: otherwise the server would use the client's directories. */
survey.settings = () => ({ capabilities: { sampling: {} } });
export async function survey(session) {
    await session.list('tools');
    await session.call('list_allowed_directories', {});
    await session.call('list_directory', { path: dir });
    await session.call('directory_tree', { path: dir });
    await session.call('read_text_file', { path: `${dir}/notes/ünïcode.txt` });
    await session.call('read_text_file', { path: `${dir}/none.txt` }, { label: 'a file that is not there' });
    await session.call('read_text_file', { path: '/etc/hostname' }, { label: 'a file outside' });
    await session.call('read_media_file', { path: `${dir}/pixel.png` });
    await session.call('write_file', { path: `${dir}/new.txt`, content: 'one\r\ntwo\tthree\n' });
    await session.call('edit_file', { path: `${dir}/new.txt`, edits: [{ oldText: 'two', newText: 'deux' }], dryRun: true });
    await session.call('get_file_info', { path: `${dir}/new.txt` });
    await session.call('search_files', { path: dir, pattern: '**/*.txt' });
    await session.call('move_file', { source: `${dir}/new.txt`, destination: `${dir}/moved.txt` });
    await session.call('read_multiple_files', { paths: [`${dir}/moved.txt`, `${dir}/none.txt`] });
}

/** With roots: the server requests them and uses their directories. */
roots.settings = () => ({ roots: [{ uri: pathToFileURL(`${dir}/notes`).href, name: 'notes' }] });
export async function roots(session) {
    await session.transcript.until(m => m.method === 'roots/list', 'the roots request');
    await session.list('tools');
    // The server checks the directories in the client's answer before it uses them.
    const allowed = () => session.sdk.call(session.client, { name: 'list_allowed_directories', arguments: {} }, {});
    await session.transcript.poll(async () => JSON.stringify(await allowed()).includes('/notes'));
    await session.call('list_allowed_directories', {});
    await session.call('list_directory', { path: `${dir}/notes` });
    await session.call('list_directory', { path: dir }, { label: 'above the root' });
}

/** Calls every tool once, each in its own conversation, so that each result is the first. */
export async function structured(session) {
    await session.list('tools');
    const at = name => `${process.env.E2E_DIR}/${name}`;
    const call = (name, args) => session.call(name, args, { meta: { threadId: `filesystem-${name}` } });
    await call('list_allowed_directories', {});
    await call('create_directory', { path: at('made') });
    await call('write_file', { path: at('made/a.txt'), content: 'one\n' });
    await call('edit_file', { path: at('made/a.txt'), edits: [{ oldText: 'one', newText: 'two' }] });
    await call('read_file', { path: at('made/a.txt') });
    await call('read_text_file', { path: at('made/a.txt') });
    await call('read_media_file', { path: at('pixel.png') });
    await call('read_multiple_files', { paths: [at('made/a.txt')] });
    await call('list_directory', { path: at('') });
    await call('list_directory_with_sizes', { path: at('made') });
    await call('directory_tree', { path: at('') });
    await call('search_files', { path: at(''), pattern: '*.txt' });
    await call('get_file_info', { path: at('made/a.txt') });
    await call('move_file', { source: at('made/a.txt'), destination: at('made/b.txt') });
}
