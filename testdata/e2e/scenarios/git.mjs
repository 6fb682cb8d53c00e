// @cyanheads/git-mcp-server on the repository at E2E_REPO.
const repo = process.env.E2E_REPO;

export async function survey(session) {
    await session.list('tools');
    await session.list('resources');
    await session.list('prompts');
    await session.call('git_status', { path: repo });
    await session.call('git_log', { path: repo, maxCount: 2 });
    await session.call('git_status', {}, { label: 'git_status without a path' });
    await session.call('git_status', { path: `${repo}/none` }, { label: 'git_status of nothing' });
}

/** What the fill test looks at: a call that leaves the path to attache. */
export async function fill(session) {
    await session.list('tools');
    await session.call('git_status', {});
    await session.call('git_status', { path: repo }, { label: 'git_status with the path' });
    // Its schema allows no other argument: a path filled in here is refused.
    await session.call('git_wrapup_instructions', { acknowledgement: 'Y' }, { label: 'a tool that has no path' });
}
