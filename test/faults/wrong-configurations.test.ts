import { randomBytes } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import Joi from 'joi';
import t from 'tap';
import { postgresQueue, redisQueue } from '../../adapters/bullmq/index.ts';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { openEmbeddedDatabase } from '../../adapters/pglite/index.ts';
import {
    migrate,
    postgresApiKeys,
    postgresInventory,
    postgresRecords,
    postgresStores,
    postgresWebhooks,
} from '../../adapters/postgres/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { alwaysLicensed, signedLicense } from '../../lib/license/index.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';

/* What a stranger got wrong and was not told: each is refused where it is given, with the option and its rule. */

type Wrong = (value?: unknown) => unknown;

const wrong = (make: unknown): Wrong => make as Wrong;
const pool = { query: async () => ({ rows: [], rowCount: 0 }), connect: async () => ({}) };
const bytes = randomBytes(32);

const NO_POOL = /pool must be a pool of node-postgres or the embedded database: an object with query and connect$/;

const cases: readonly [what: string, () => unknown, RegExp][] = [
    ['keyRing without options', () => wrong(keyRing)(), /^keyRing options: is required/],
    ['keyRing without keys', () => wrong(keyRing)({ current: 'k1' }), /^keyRing options: keys is required/],
    ['keyRing with a text', () => wrong(keyRing)({ current: 'k1', keys: { k1: 'x'.repeat(32) } }), /key k1 .*must be 32 bytes/],
    ['keyRing with its bytes as current', () => wrong(keyRing)({ current: bytes, keys: { k1: bytes } }), /current must be a string/],
    ['redisQueue without options', () => wrong(redisQueue)(), /^redisQueue options: is required/],
    ['redisQueue with another connection', () => wrong(redisQueue)({ connection: 6379 }), /connection must be a client of ioredis, or the/],
    ['redisQueue with a bad prefix', () => redisQueue({ url: 'redis://127.0.0.1', prefix: 'a:b' }), /prefix must be letters, digits/],
    ['postgresQueue without options', () => wrong(postgresQueue)(), /^postgresQueue options: is required/],
    ['signedLicense without options', () => wrong(signedLicense)(), /^signedLicense: is required/],
    ['openEmbeddedDatabase without options', () => wrong(openEmbeddedDatabase)(), /^embedded database: is required/],
    ['migrate with options', () => wrong(migrate)({ pool }), NO_POOL],
    ...[postgresStores, postgresApiKeys, postgresInventory, postgresRecords, postgresWebhooks].flatMap(
        (make): [string, () => unknown, RegExp][] => [
            [`${make.name} without options`, () => wrong(make)(), NO_POOL],
            [`${make.name} with a pool in place of options`, () => wrong(make)(pool), NO_POOL],
            [`${make.name} with a URL`, () => wrong(make)({ pool: 'postgres://127.0.0.1/x' }), NO_POOL],
        ],
    ),
];

for (const [what, make, message] of cases) {
    t.test(`refuses ${what}`, async (t) => {
        await t.rejects(async () => make(), { code: 'MISCONFIGURED', message });
    });
}

t.test('refuses options of webhook-exporter', async (t) => {
    const ring = keyRing({ current: 'k1', keys: { k1: bytes } });
    const refused = async (change: object, field: string, message: RegExp): Promise<void> => {
        const options = { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring, ...change };
        await t.rejects(hapiServer().register({ plugin: webhookExporter, options }), { code: 'MISCONFIGURED', field, message }, field);
    };
    await refused(
        { connectTimeout: 9000, attemptTimeout: 8000 },
        'connectTimeout',
        /connectTimeout must be less than or equal to attemptTimeout$/,
    );
    await refused({ maxBodyBytes: 9000, maxBytesInFlight: 8000 }, 'maxBytesInFlight', /must be greater than or equal to maxBodyBytes$/);
    await refused(
        { kinds: [{ name: 'x', schema: Joi.string() }] },
        'kinds[0].schema',
        /kinds\[0\]\.schema must be a Joi schema of an object, or a Standard Schema/,
    );
    const url = { allow: ['10.0.0.0/8', 'http://127.0.0.1:8080'] };
    await refused({ egress: url }, 'egress.allow[1]', /egress\.allow\[1\]: Entry 2 .* is a URL: write its host name, or its address/);
    await refused({ egress: { allow: ['10.0.0.0/99'] } }, 'egress.allow[0]', /is not a CIDR block: write address\/bits/);
});

t.test('refuses options of rest-api-v2', async (t) => {
    const resources = [{ path: 'campaigns', schema: Joi.object({ id: Joi.number() }), store: memoryInventory().hosts }];
    const options = { store: memoryInventory(), license: alwaysLicensed(), auth: false as const, resources };
    await t.rejects(hapiServer().register({ plugin: restApiV2, options }), {
        code: 'MISCONFIGURED',
        field: 'resources[0].path',
        message: 'rest-api-v2 options: resources[0].path must look like /workspaces/{workspace_id}/campaigns',
    });
});

t.test('refuses an unknown strategy of https-record-schema', async (t) => {
    await t.rejects(hapiServer().register({ plugin: httpsRecordSchema, options: { auth: 'nope' } }), {
        code: 'MISCONFIGURED',
        field: 'auth',
        message: /^https-record-schema options: auth must name a strategy of the server/,
    });
});

t.test('takes options that are right', async (t) => {
    t.doesNotThrow(() => postgresStores({ pool: pool as never }));
    t.doesNotThrow(() => redisQueue({ connection: { host: '127.0.0.1', port: 6379 } }));
    t.ok(memoryApiKeys());
});
