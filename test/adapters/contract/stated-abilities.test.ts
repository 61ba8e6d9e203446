import pg from 'pg';
import t from 'tap';
import { postgresQueue, redisQueue } from '../../../adapters/bullmq/index.ts';
import { inventoryAbilities } from '../../../adapters/contract/inventory/fixture.ts';
import { recordAbilities } from '../../../adapters/contract/records/fixture.ts';
import type { Ability } from '../../../adapters/contract/register-laws.ts';
import { type WebhookStores, webhookAbilities } from '../../../adapters/contract/webhooks/stores.ts';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { postgresApiKeys, postgresInventory, postgresRecords, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import { openScanDatabase } from '../../../adapters/scan-database/index.ts';
import type { Collection, InventoryStore } from '../../../lib/inventory/store.ts';
import type { ApiKeyStore } from '../../../lib/keys/store.ts';
import type { RecordStore } from '../../../lib/records/store.ts';
import type { DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import { databaseNamed } from '../postgres/databases.ts';
import { scanDatabase } from '../scan-database/scan-database.ts';

/*
 * The laws of an ability are those of the stores that state it, so that one that loses it would keep all laws that are left. Here stands what each of
 * ours states: inventory, keys, records and webhooks in the words of the laws or of the interface, collections by functions, filters and extra fields.
 */

const DATABASES = ['PostgreSQL', 'PGlite'];
const OWN = ['memory', ...DATABASES];
const EVERY = [...OWN, 'scan database'];
const TEXTS = [...DATABASES, 'scan database'];

const STATED: readonly (readonly [subject: string, abilities: string, stores: readonly string[]])[] = [
    ['inventory', 'changes counts filters hostVulns notes selects selectsHosts services sessions vulns', EVERY],
    ['inventory', 'workspaceNotes workspaceServices workspaceSessions workspaceVulns', EVERY],
    ['inventory', 'dryRuns expires imports keepsBoundaries keepsFindings moves remembersImports removes renames replaces', OWN],
    ['inventory', 'sightings tellsDeletions updatesWorkspaces', OWN],
    ['inventory', 'texts', TEXTS],
    ['workspaces', 'select count name search updated_since', EVERY],
    ['workspaces', 'deletions', OWN],
    ['hosts', 'select count address arch name os_name purpose search state updated_since', EVERY],
    ['hosts', 'deletions last_seen last_seen_since', OWN],
    ['hosts', 'listText', TEXTS],
    ['services', 'select count name search state updated_since', EVERY],
    ['services', 'deletions', OWN],
    ['services', 'listText', TEXTS],
    ['notes', 'select count updated_since', EVERY],
    ['notes', 'deletions', OWN],
    ['sessions', 'select count', EVERY],
    ['vulns', 'select count name search updated_since', EVERY],
    ['vulns', 'deletions', OWN],
    ['vulns', 'listText', TEXTS],
    ['hostVulns', 'select count name search updated_since', EVERY],
    ['hostVulns', 'deletions', OWN],
    ['hostVulns', 'listText', DATABASES],
    ['workspaceServices', 'select count address name search state updated_since', EVERY],
    ['workspaceServices', 'deletions', OWN],
    ['workspaceServices', 'listText', TEXTS],
    ['workspaceNotes', 'select count address updated_since', EVERY],
    ['workspaceNotes', 'deletions', OWN],
    ['workspaceSessions', 'select count', EVERY],
    ['workspaceVulns', 'select count address name search updated_since', EVERY],
    ['workspaceVulns', 'deletions', OWN],
    ['workspaceVulns', 'listText', TEXTS],
    ['keys', 'keepsLimits keepsScopes reseal sealedByOthers', OWN],
    ['keys', 'findByDigests sealedSamples', DATABASES],
    ['records', 'counts enriches', OWN],
    ['webhooks', 'activity attempts content counts discarding holding idempotency keptTraces lateMessages notices ofExporters', OWN],
    ['webhooks', 'order overview pages rate replays responses retention silentSessions subscriptions summaries traces', OWN],
    ['webhooks', 'notifications transactions', DATABASES],
    ['webhooks', 'databaseOfDeliveries databaseOfExporters databaseOfSettings', OWN],
    ['queue', 'hasLostJobs', ['queue in memory', 'queue on Redis']],
    ['queue', 'address', ['queue on Redis', 'queue on PostgreSQL']],
    ['queue', 'name', ['queue in memory', 'queue on Redis', 'queue on PostgreSQL']],
];

/** What the table says of a store. */
function expected(store: string): readonly string[] {
    return STATED.filter(([, , stores]) => stores.includes(store)).flatMap(([subject, abilities]) => of(subject, abilities.split(' ')));
}

function of(subject: string, abilities: readonly string[]): readonly string[] {
    return abilities.map((ability) => `${subject}: ${ability}`);
}

/** What every store of rows has, and only a fixture may lack. */
const OF_FIXTURES = new Set(['many-hosts', 'reads-open', 'rows']);

/** What the laws find stated. */
function byLaws<Fixture>(subject: string, abilities: Readonly<Record<string, Ability<Fixture>>>, stores: object): readonly string[] {
    const names = Object.keys(abilities).filter((name) => !OF_FIXTURES.has(name) && abilities[name]?.has(stores as Fixture));
    return of(subject, names);
}

function ofInventory(store: InventoryStore): readonly string[] {
    const collections = Object.entries<unknown>({ ...store }) as [string, Collection<{ readonly id: number }>][];
    return [
        ...byLaws('inventory', inventoryAbilities, { store }),
        ...collections.flatMap(([name, { list, listText, select, count, deletions, filters = [], extras = [] }]) => {
            const has = Object.entries({ listText, select, count, deletions }).filter(([, ability]) => ability !== undefined);
            return typeof list === 'function' ? of(name, [...has.map(([ability]) => ability), ...filters, ...extras]) : [];
        }),
    ];
}

/** Which of them say what their rows are in, without which stores of two databases are not refused together. */
function databasesOf({ deliveries, exporters, settings }: Pick<WebhookStores, 'exporters' | 'deliveries' | 'settings'>): readonly string[] {
    const named = Object.entries({ Deliveries: deliveries, Exporters: exporters, Settings: settings }).filter(
        ([, { database }]) => database,
    );
    return of(
        'webhooks',
        named.map(([name]) => `databaseOf${name}`),
    );
}

interface OwnStores {
    readonly inventory: InventoryStore;
    readonly keys: ApiKeyStore;
    readonly records: RecordStore;
    readonly webhooks: Pick<WebhookStores, 'exporters' | 'deliveries' | 'settings'>;
}

/** What a store of keys has beside what each must have. */
const KEYS = ['keepsLimits', 'keepsScopes', 'findByDigests', 'sealedSamples', 'sealedByOthers', 'reseal'] as const;

function ofOwn({ inventory, keys, records, webhooks }: OwnStores): readonly string[] {
    return [
        ...ofInventory(inventory),
        ...of(
            'keys',
            KEYS.filter((ability) => keys[ability]),
        ),
        ...byLaws('records', recordAbilities, { store: records }),
        ...byLaws('webhooks', webhookAbilities, webhooks),
        ...databasesOf(webhooks),
    ];
}

/** What a queue has beside what each must have. */
function ofQueue({ name, address, hasLostJobs }: DeliveryQueue): readonly string[] {
    const has = Object.entries({ name, address, hasLostJobs }).filter(([, ability]) => ability !== undefined);
    return of(
        'queue',
        has.map(([ability]) => ability),
    );
}

const sorted = (abilities: readonly string[]): readonly string[] => abilities.toSorted();

t.test('memory', (t) => {
    const inventory = memoryInventory();
    const stores = { inventory, keys: memoryApiKeys(), records: memoryRecords({ inventory }), webhooks: memoryWebhooks() };
    t.strictSame(sorted(ofOwn(stores)), sorted(expected('memory')));
    t.end();
});

for (const name of DATABASES) {
    t.test(name, async (t) => {
        const { pool, stop } = await databaseNamed(name).openMigrated();
        t.after(stop);
        const webhooks = postgresWebhooks({ pool });
        const stores = {
            inventory: postgresInventory({ pool }),
            keys: postgresApiKeys({ pool }),
            records: postgresRecords({ pool }),
            webhooks,
        };
        t.strictSame(sorted(ofOwn(stores)), sorted(expected(name)));
    });
}

t.test('scan database', async (t) => {
    const { url, stop } = await scanDatabase(2);
    t.after(stop);
    const { inventory, close } = await openScanDatabase({ connectionString: url });
    t.after(close);
    t.strictSame(sorted(ofInventory(inventory)), sorted(expected('scan database')));
});

/** Nothing of them is reached before they are asked for something. */
const QUEUES: Readonly<Record<string, () => DeliveryQueue>> = {
    'queue in memory': memoryQueue,
    'queue on Redis': () => redisQueue({ url: 'redis://127.0.0.1:1' }),
    'queue on PostgreSQL': () => postgresQueue({ pool: new pg.Pool() }),
};

for (const [name, create] of Object.entries(QUEUES)) {
    t.test(name, async (t) => {
        const queue = create();
        t.teardown(() => queue.close());
        t.strictSame(sorted(ofQueue(queue)), sorted(expected(name)));
    });
}
