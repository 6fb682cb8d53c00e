// server-filesystem works in the directory the test names in E2E_DIR, which
// holds the same files at the start of every run.
import { pathToFileURL } from 'node:url';

const dir = process.env.E2E_DIR;

/** Without roots, or the server would take its directories from the client. */
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

/** With roots: the server asks for them and works there. */
roots.settings = () => ({ roots: [{ uri: pathToFileURL(`${dir}/notes`).href, name: 'notes' }] });
export async function roots(session) {
    await session.transcript.until(m => m.method === 'roots/list', 'the roots request');
    await session.barrier();
    await session.list('tools');
    await session.call('list_allowed_directories', {});
    await session.call('list_directory', { path: `${dir}/notes` });
    await session.call('list_directory', { path: dir }, { label: 'above the root' });
}
