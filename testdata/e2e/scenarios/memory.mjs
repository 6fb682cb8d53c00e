// server-memory stores its graph in the file that MEMORY_FILE_PATH names.
export async function survey(session) {
    await session.list('tools');
    await session.call('create_entities', {
        entities: [
            { name: 'attache', entityType: 'program', observations: ['stands between', '“quotes” and \\slashes\\'] },
            { name: 'server', entityType: 'program', observations: [] }
        ]
    });
    await session.call('create_relations', { relations: [{ from: 'attache', to: 'server', relationType: 'wraps' }] });
    await session.call('add_observations', { observations: [{ entityName: 'server', contents: ['answers'] }] });
    await session.call('add_observations', { observations: [{ entityName: 'nobody', contents: ['x'] }] }, { label: 'observe nobody' });
    await session.call('read_graph', {});
    await session.call('search_nodes', { query: 'between' });
    await session.call('open_nodes', { names: ['server', 'nobody'] });
    await session.call('delete_entities', { entityNames: ['server'] });
    await session.call('read_graph', {}, { label: 'read_graph at the end' });
    await session.list('resources');
}

/** Calls every tool once, each in its own conversation, so that each result is the first. */
export async function structured(session) {
    await session.list('tools');
    const call = (name, args) => session.call(name, args, { meta: { threadId: `memory-${name}` } });
    const entity = name => ({ name, entityType: 'fruit', observations: ['red'] });
    await call('create_entities', { entities: [entity('apple'), entity('cherry')] });
    await call('create_relations', { relations: [{ from: 'apple', to: 'cherry', relationType: 'beside' }] });
    await call('add_observations', { observations: [{ entityName: 'apple', contents: ['round'] }] });
    await call('read_graph', {});
    await call('search_nodes', { query: 'apple' });
    await call('open_nodes', { names: ['apple'] });
    await call('delete_observations', { deletions: [{ entityName: 'apple', observations: ['round'] }] });
    await call('delete_relations', { relations: [{ from: 'apple', to: 'cherry', relationType: 'beside' }] });
    await call('delete_entities', { entityNames: ['cherry'] });
}
