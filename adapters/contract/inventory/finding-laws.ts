import assert from 'node:assert/strict';
import type { NoteInput, VulnInput } from '../../../lib/inventory/findings.ts';
import type { Host, HostInput } from '../../../lib/inventory/host.ts';
import { rowsOf } from '../../../lib/inventory/host-pages.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import type { WorkspaceNote, WorkspaceVuln } from '../../../lib/inventory/resources.ts';
import type { Selection } from '../../../lib/inventory/selection.ts';
import type { Collection } from '../../../lib/inventory/store.ts';
import { assertFields, only, present, underWay } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import {
    batches,
    dns,
    each,
    failing,
    fullHost,
    https,
    type InventoryFixture,
    type InventoryLaws,
    manyHosts,
    nextMillisecond,
    rows,
} from './fixture.ts';

const NONE = importCounts();
const onDns = { port: dns.port, proto: dns.proto };
const note: NoteInput = { ntype: 'scanner.uptime', data: { text: 'up 🖥', deep: { list: [1, null, 'x'] } }, critical: true, seen: false };
const version: NoteInput = { ...onDns, ntype: 'scanner.version', data: { version: '2.90' } };
const vuln: VulnInput = {
    ...onDns,
    name: 'DNS: köln 💾',
    info: 'line\nbreak',
    exploited_at: new Date('2026-11-21T09:30:00.120Z'),
    vuln_detail_count: 2,
    vuln_attempt_count: 3,
    nexpose_data_vuln_def_id: 2_147_483_647,
};
const whole: VulnInput = { name: 'CVE-2026-0001', info: null };
const noted: HostInput = { ...fullHost, services: [dns, https], notes: [note, version], vulns: [vuln, whole] };

/** What a workspace shows of hosts, notes and vulnerabilities. */
interface Seen {
    readonly hosts: readonly Host[];
    readonly notes: readonly WorkspaceNote[];
    readonly vulns: readonly WorkspaceVuln[];
}

async function seen({ hosts, workspaceNotes, workspaceVulns }: InventoryFixture['store'], workspaceId: number): Promise<Seen> {
    return {
        hosts: await rows(hosts, [workspaceId]),
        notes: await rows(present(workspaceNotes), [workspaceId]),
        vulns: await rows(present(workspaceVulns), [workspaceId]),
    };
}

/** What an import makes of notes and vulnerabilities. */
const findingLaws: Laws<InventoryFixture> = {
    async 'keeps the notes and vulnerabilities of a host and of its services'({ store }) {
        const { workspace, notes, vulns } = await store.importHosts('default', each([{ address: '192.0.2.1' }, noted]));
        const found = await seen(store, workspace.id);
        const { id: host_id } = present(found.hosts[1]);
        const [service] = await rows(present(store.services), [workspace.id, host_id]);
        const service_id = present(service).id;
        const { port: _port, proto: _proto, ...vulnFields } = vuln;

        assert.deepEqual(
            [notes, vulns],
            [
                { ...NONE, new: 2 },
                { ...NONE, new: 2 },
            ],
        );
        assertFields(found.hosts[1], { note_count: 2, vuln_count: 2, service_count: 2 });
        assertFields(found.hosts[0], { note_count: 0, vuln_count: 0 });
        assert.deepEqual(
            found.notes.map(({ id: _id, created_at: _created, updated_at: _updated, ...fields }) => fields),
            [
                { workspace_id: workspace.id, host_id, service_id: null, ...note },
                {
                    ...{ workspace_id: workspace.id, host_id, service_id, critical: null, seen: null },
                    ...{ ntype: version.ntype, data: version.data },
                },
            ],
        );
        const blank = { exploited_at: null, vuln_detail_count: 0, vuln_attempt_count: 0, nexpose_data_vuln_def_id: null };
        assert.deepEqual(
            found.vulns.map(({ id: _id, created_at: _created, updated_at: _updated, ...fields }) => fields),
            [
                { host_id, service_id, ...vulnFields },
                { host_id, service_id: null, ...blank, ...whole },
            ],
        );
        assert.deepEqual(await rows(present(store.notes), [workspace.id, host_id]), found.notes);
        assert.deepEqual(await rows(present(store.vulns), [workspace.id, host_id, service_id]), found.vulns.slice(0, 1));
    },

    async 'leaves notes and vulnerabilities that are so already as they are, and spends no id on them'({ store }) {
        const { workspace } = await store.importHosts('default', each([noted]));
        const before = await seen(store, workspace.id);
        await nextMillisecond();
        const { hosts, notes, vulns } = await store.importHosts('default', each([noted, noted]));
        assert.deepEqual(await seen(store, workspace.id), before);
        assert.deepEqual([hosts.unchanged, notes, vulns], [1, { ...NONE, unchanged: 2 }, { ...NONE, unchanged: 2 }]);

        await store.importHosts('default', each([{ ...noted, notes: [...present(noted.notes), { ntype: 'more', data: {} }] }]));
        const after = await seen(store, workspace.id);
        assert.deepEqual(after.notes[2]?.id, present(before.notes[1]).id + 1);
        assert.deepEqual(after.notes.slice(0, 2), before.notes);
        assertFields(after.hosts[0], { note_count: 3, vuln_count: 2 });
        assert.ok(present(after.hosts[0]).updated_at > present(before.hosts[0]).updated_at, 'a note more changes its host');
    },

    async 'changes notes and vulnerabilities that are told otherwise where they are'({ store }) {
        const { workspace } = await store.importHosts('default', each([noted]));
        const before = await seen(store, workspace.id);
        await nextMillisecond();
        const other: HostInput = {
            ...noted,
            notes: [{ ntype: note.ntype, data: { other: [] } }, version],
            vulns: [{ ...onDns, name: vuln.name, info: 'other', exploited_at: null, vuln_attempt_count: 4 }, whole],
        };
        const { hosts, notes, vulns } = await store.importHosts('default', each([other, other]));
        const after = await seen(store, workspace.id);

        assert.deepEqual(notes, { ...NONE, changed: 1, unchanged: 1 });
        assert.deepEqual(
            [hosts, vulns],
            [
                { ...NONE, unchanged: 1 },
                { ...NONE, changed: 1, unchanged: 1 },
            ],
        );
        const [firstNote, firstVuln] = [present(after.notes[0]), present(after.vulns[0])];
        assert.deepEqual(after, {
            hosts: before.hosts,
            notes: [{ ...before.notes[0], data: { other: [] }, updated_at: firstNote.updated_at }, before.notes[1]],
            vulns: [
                { ...before.vulns[0], info: 'other', exploited_at: null, vuln_attempt_count: 4, updated_at: firstVuln.updated_at },
                before.vulns[1],
            ],
        });
        assert.ok(firstNote.updated_at > present(before.notes[0]).updated_at && firstVuln.updated_at > present(before.vulns[0]).updated_at);
    },

    async 'tells notes of one type and vulnerabilities of one name apart by their place'({ store }) {
        const data = ['a', 'b', 'c'].map((text) => ({ text }));
        const some = (texts: readonly object[]): HostInput => ({
            ...noted,
            notes: texts.flatMap((text) => [
                { ...version, data: { ...text } },
                { ...onDns, ntype: null, data: { ...text } },
            ]),
            vulns: texts.map((text) => ({ ...whole, info: JSON.stringify(text) })),
        });
        const { workspace } = await store.importHosts('default', each([some(data.slice(0, 2))]));
        const summary = await store.importHosts(
            'default',
            each([some([{ text: 'a' }, { text: 'B' }, { text: 'c' }]), some(data.slice(0, 1))]),
        );
        const { hosts, notes, vulns } = await seen(store, workspace.id);

        assert.deepEqual(summary.notes, { ...NONE, new: 2, changed: 2, unchanged: 2 });
        assert.deepEqual(summary.vulns, { ...NONE, new: 1, changed: 1, unchanged: 1 });
        assert.deepEqual(
            notes.filter(({ ntype }) => ntype === null).map(({ data: { text } }) => text),
            ['a', 'B', 'c'],
        );
        assert.deepEqual(
            vulns.map(({ info }) => info),
            ['{"text":"a"}', '{"text":"B"}', '{"text":"c"}'],
        );
        assertFields(hosts[0], { note_count: 6, vuln_count: 3 });
    },

    async 'keeps the notes and vulnerabilities of all that names an address, and what is said again once'({ store }) {
        const ports = { port: https.port, proto: https.proto };
        const told = (text: string): HostInput => ({
            ...{ address: fullHost.address, services: [dns, https] },
            notes: [
                { ...version, data: { text } },
                { ...ports, ntype: 'same', data: { a: 1, b: 2 } },
                { ...version, data: { text } },
            ],
            vulns: [{ ...whole, info: text }, vuln],
        });
        const input = [told('a'), told('b'), ...manyHosts(400), told('c'), told('a')];
        const first = await store.importHosts('default', each(input));
        const before = await seen(store, first.workspace.id);
        await nextMillisecond();
        const second = await store.importHosts('default', each(input));

        assert.deepEqual(
            [first.notes, first.vulns],
            [
                { ...NONE, new: 7 },
                { ...NONE, new: 4 },
            ],
        );
        assert.deepEqual(
            before.notes.filter(({ ntype }) => ntype === version.ntype).map(({ data: { text } }) => text),
            ['a', 'a', 'b', 'b', 'c', 'c'],
        );
        assert.deepEqual(
            before.vulns.filter(({ name }) => name === whole.name).map(({ info }) => info),
            ['a', 'b', 'c'],
        );
        assertFields(before.hosts[0], { note_count: 7, vuln_count: 4, service_count: 2 });
        assert.deepEqual(
            [second.notes, second.vulns],
            [
                { ...NONE, unchanged: 7 },
                { ...NONE, unchanged: 4 },
            ],
        );
        assert.deepEqual(await seen(store, first.workspace.id), before);
    },

    async 'leaves the notes of others alone'({ store, add }) {
        const { workspace } = await store.importHosts('default', each([{ ...noted, notes: [] }]));
        const { id } = only((await seen(store, workspace.id)).hosts);
        await present(add?.note)(id);
        const [others] = (await seen(store, workspace.id)).notes;
        const { notes } = await store.importHosts('default', each([{ ...noted, notes: [{ ntype: null, data: { mine: true } }] }]));

        assert.deepEqual(notes, { ...NONE, new: 1 });
        assert.deepEqual((await seen(store, workspace.id)).notes[0], others);
    },

    async 'imports no note when the source fails half-way'({ store }) {
        const { workspace } = await store.importHosts('default', each([noted]));
        const before = await seen(store, workspace.id);
        const other: HostInput = { ...noted, notes: [{ ...note, data: {} }, note], vulns: [{ ...whole, info: 'other' }, whole] };
        await assert.rejects(store.importHosts('default', failing([other, ...manyHosts(300)])), { message: 'the source broke' });
        await store.importHosts('default', each([{ address: fullHost.address }]));

        assert.deepEqual(await seen(store, workspace.id), before);
    },

    async 'shows notes and vulnerabilities at once with their import'({ store }) {
        const { workspace } = await store.importHosts('default', each([noted]));
        const told = (text: string): HostInput => ({ ...noted, notes: [{ ...note, data: { text } }, version, note], vulns: [vuln] });
        const importing = underWay(
            store.importHosts(
                'default',
                each([
                    told('after'),
                    ...manyHosts(400).map((host) => ({ ...host, notes: [note] })),
                    { address: '192.0.2.1', vulns: [whole], notes: [note] },
                ]),
            ),
        );
        const states = new Set<string>();
        while (!importing.ended()) {
            const [found = []] = await batches(present(store.workspaceNotes), [workspace.id]);
            states.add(`${found[0]?.data.text} ${found.length > 100}`);
        }
        await importing.result;

        assert.deepEqual(
            [...states].filter((state) => state !== `${note.data.text} false` && state !== 'after true'),
            [],
        );
        const { notes, vulns } = await seen(store, workspace.id);
        assert.deepEqual([notes.length, vulns.length], [404, 3]);
    },
};

/** What goes with a host. */
const removalLaws: Laws<InventoryFixture> = {
    async 'removes the notes and vulnerabilities of a host with it'({ store }) {
        const { workspace } = await store.importHosts('default', each([noted, { ...noted, address: '192.0.2.1' }]));
        const before = await seen(store, workspace.id);
        await present(store.removeHosts)('default', { address: { first: '192.0.2.1', last: '192.0.2.1' } });

        const first = <Row>(found: readonly Row[]): Row[] => found.slice(0, found.length / 2);
        assert.deepEqual(await seen(store, workspace.id), {
            hosts: first(before.hosts),
            notes: first(before.notes),
            vulns: first(before.vulns),
        });
    },
};

/** What goes with an import that replaces. */
const replacingLaws: Laws<InventoryFixture> = {
    async 'removes the notes and vulnerabilities that a replacement does not name, but for those of others'({ store, add }) {
        const gone: HostInput = { ...noted, address: '192.0.2.1' };
        const shrinking: HostInput = { ...noted, address: '192.0.2.2' };
        const { workspace } = await store.importHosts('default', each([noted, gone, shrinking]));
        const before = await seen(store, workspace.id);
        await present(add?.note)(present(before.hosts[0]).id);
        const others = (await seen(store, workspace.id)).notes.at(-1);
        await nextMillisecond();
        const less: HostInput = { ...noted, notes: [{ ...note, data: {} }], vulns: [whole, { ...whole, name: 'more' }] };
        const summary = await store.importHosts(
            'default',
            each([less, { ...shrinking, services: [https], notes: [note], vulns: [whole] }]),
            {
                replace: true,
            },
        );
        const after = await seen(store, workspace.id);

        assert.deepEqual(summary.hosts, { ...NONE, changed: 2, gone: 1 });
        assert.deepEqual(summary.notes, { ...NONE, changed: 1, unchanged: 1, gone: 4 });
        assert.deepEqual(summary.vulns, { ...NONE, new: 1, unchanged: 2, gone: 4 });
        assertFields(after.hosts[0], { note_count: 2, vuln_count: 2, service_count: 2 });
        assertFields(after.hosts[1], { note_count: 1, vuln_count: 1, service_count: 1 });
        assert.ok(present(after.hosts[1]).updated_at > present(before.hosts[2]).updated_at);
        assert.deepEqual(after.notes, [
            { ...before.notes[0], data: {}, updated_at: present(after.notes[0]).updated_at },
            before.notes[4],
            others,
        ]);
        assert.deepEqual(
            after.vulns.map(({ id, name }) => [id, name]),
            [
                [before.vulns[1]?.id, whole.name],
                [before.vulns[5]?.id, whole.name],
                [after.vulns[2]?.id, 'more'],
            ],
        );
    },

    async 'leaves notes and vulnerabilities that a replacement names as they are'({ store }) {
        const { workspace } = await store.importHosts('default', each([noted]));
        const before = await seen(store, workspace.id);
        const { hosts, notes } = await store.importHosts('default', each([noted]), { replace: true });

        assert.deepEqual(
            [hosts, notes],
            [
                { ...NONE, unchanged: 1 },
                { ...NONE, unchanged: 2 },
            ],
        );
        assert.deepEqual(await seen(store, workspace.id), before);
    },
};

/** What a store shows below a host. */
const hostLaws: Laws<InventoryFixture> = {
    async 'shows below a host the vulnerabilities of its services and those of the host as a whole'({ store }) {
        const { workspace } = await store.importHosts('default', each([{ ...noted, address: '192.0.2.1' }, noted]));
        const { hosts, vulns } = await seen(store, workspace.id);
        const { id } = present(hosts[1]);

        const below = await rows(present(store.hostVulns), [workspace.id, id]);
        assert.deepEqual(
            below,
            vulns.filter(({ host_id }) => host_id === id),
        );
        assert.deepEqual(
            below.map(({ name, service_id }) => [name, service_id === null]),
            [
                [vuln.name, false],
                [whole.name, true],
            ],
        );
    },
};

/** What a store selects below a workspace. */
const selectingLaws: Laws<InventoryFixture> = {
    async 'selects the rows of some hosts of a workspace'({ store }) {
        const inputs = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => ({ ...noted, address }));
        const { workspace } = await store.importHosts('default', each(inputs));
        const { id: other } = (await store.importHosts('other', each(inputs))).workspace;
        const [first, , third] = await rows(store.hosts, [workspace.id]);
        const hosts = [present(third).id, present(first).id];
        for (const collection of [store.workspaceServices, store.workspaceNotes, store.workspaceVulns] as readonly Collection<
            Pick<WorkspaceVuln, 'id' | 'host_id'>
        >[]) {
            assert.equal(collection.selectsHosts, true);
            const select = present(collection.select);
            const selected = async (path: number, selection: Selection) => (await rowsOf(select([path], selection))).map(({ id }) => id);
            const expected = (await rows(collection, [workspace.id])).filter(({ host_id }) => hosts.includes(host_id));
            const found = expected.map(({ id }) => id);

            assert.ok(found.length > 2);
            assert.deepEqual(await selected(workspace.id, { hosts }), found);
            assert.deepEqual(await selected(workspace.id, { hosts, after: { id: found[0] ?? 0 }, limit: 2 }), found.slice(1, 3));
            assert.deepEqual(await selected(workspace.id, { hosts: [] }), []);
            assert.deepEqual(await selected(other, { hosts }), []);
        }
    },
};

const NEEDED = ['imports', 'keepsFindings', 'services', 'notes', 'vulns', 'workspaceNotes', 'workspaceVulns'] as const;

/** Laws of an `InventoryWriter` that keeps notes and vulnerabilities. */
export const findingGroups: InventoryLaws = [
    { needs: NEEDED, laws: findingLaws },
    { needs: [...NEEDED, 'hostVulns'], laws: hostLaws },
    { needs: [...NEEDED, 'workspaceServices', 'selectsHosts'], laws: selectingLaws },
    { needs: [...NEEDED, 'removes'], laws: removalLaws },
    { needs: [...NEEDED, 'replaces'], laws: replacingLaws },
];
