import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import type { Server } from '@hapi/hapi';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { default as formats } from 'ajv-formats';
import Joi from 'joi';
import { generateSource } from 'oazapfts';
import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { plugin as adminConsole } from '../../../plugins/admin-console/index.ts';
import { type RestApiV2Options, plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { run } from '../../support/packed.ts';
import { host, systemOf } from '../admin-console/host.ts';
import { answers, served } from './served.ts';

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);

type Json = Record<string, unknown>;

interface Told {
    readonly responses: Readonly<Record<string, { readonly headers?: Json }>>;
}

async function filled() {
    const store = memoryInventory();
    const services = [{ port: 443, proto: 'tcp', state: 'open', name: 'https', info: null }] as const;
    await store.importHosts('default', [{ address: '192.0.2.1', services }] as never);
    await store.addNote(1, { data: { text: 'x' } });
    await store.addSession(1, {});
    await store.addVuln(1, { name: 'CVE-2026-0001' });
    return store;
}

/** A server with all that a document can tell of. */
async function whole(options: Partial<RestApiV2Options> = {}) {
    const campaigns = {
        path: '/workspaces/{workspace_id}/old-campaigns',
        schema: Joi.object({ id: Joi.number().integer(), name: Joi.string(), ended_at: Joi.date().allow(null) }),
        store: { async *list() {}, get: async () => null },
    };
    const server = await host({ host: '127.0.0.1', port: 0 });
    await server.register([
        {
            plugin: adminConsole,
            options: { system: systemOf(server), auth: 'session', authorize: () => true, actor: () => 'ada', screens: {} },
        },
        { plugin: restApiV2, options: { store: await filled(), license: alwaysLicensed(), resources: [campaigns], ...options } },
    ]);
    return await answers(server);
}

async function documentOf({ get }: Awaited<ReturnType<typeof served>>): Promise<Json> {
    return JSON.parse((await get('/openapi.json')).body);
}

t.test('passes a public linter', async (t) => {
    const document = await documentOf(await whole());
    const config = await createConfig({ extends: ['recommended-strict'] });
    for (const each of [document, await documentOf(await whole({ rateLimit: { requests: 9 } }))]) {
        const problems = await lintFromString({ source: JSON.stringify(each), config });
        t.same(
            problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`),
            [],
        );
    }
    t.match(document, { openapi: '3.1.0', webhooks: { test: {}, idr_investigation_created: {} } });
});

t.test('tells of HEAD, of what is too long, and of a limit where there is one', async (t) => {
    for (const [options, limits] of [
        [{}, undefined],
        [{ rateLimit: { requests: 9 } }, { 429: { $ref: '#/components/responses/TooManyRequests' } }],
    ] as const) {
        const { info, paths } = (await documentOf(await whole(options))) as { info: Json; paths: Record<string, { get?: Told }> };
        t.match(info.description, 'HEAD');
        for (const [path, { get }] of Object.entries(paths).filter(([path]) => path.startsWith('/rest_api/v2/'))) {
            t.match(get?.responses, { 431: { $ref: '#/components/responses/TooLong' }, ...limits }, path);
            t.equal(get?.responses[429] !== undefined, limits !== undefined, path);
            t.equal(
                Object.keys(get?.responses[200]?.headers ?? {}).filter((name) => name.startsWith('RateLimit')).length,
                limits ? 2 : 0,
                path,
            );
        }
    }
});

t.test('tells of every route, and of none that there is not', async (t) => {
    const running = await whole();
    const { paths } = (await documentOf(running)) as { paths: Record<string, Json> };
    const told = Object.entries(paths).flatMap(([path, operations]) => Object.keys(operations).map((method) => `${method} ${path}`));
    // Pages for people answer with nothing that a schema would describe.
    const routes = running.server
        .table()
        .filter(({ path, method }) => method !== '*' && !/^\/admin(?:\/|$)/.test(path))
        .filter(({ path }) => !path.endsWith('openapi.json'))
        // An index and its rows are one route.
        .flatMap(({ method, path }) =>
            (path.endsWith('?}') ? [path.replace(/\/[^/]*$/, ''), path.replace('?}', '}')] : [path]).map((one) => `${method} ${one}`),
        );
    const shapes = (lines: string[]): string[] => lines.map((line) => line.replaceAll(/\{\w+\}/g, '{}')).sort();
    t.same(shapes(told), shapes(routes));
    const ids = Object.values(paths).flatMap((operations) => Object.values(operations).map((each) => (each as Json).operationId));
    t.equal(new Set(ids).size, ids.length, 'operations have names of their own');
});

t.test('has examples that fulfil their schemas', async (t) => {
    const document = await documentOf(await whole());
    ajv.addSchema(document, 'whole');
    let checked = 0;
    walk(document, (value, pointer) => {
        const { examples, example, schema } = value as { examples?: unknown; example?: unknown; schema?: unknown };
        for (const each of Array.isArray(examples) ? examples : []) {
            const validate = ajv.getSchema(`whole#${pointer}`);
            t.ok(validate?.(each), `${pointer}: ${JSON.stringify(each)} ${ajv.errorsText(validate?.errors)}`);
            checked += 1;
        }
        if (example !== undefined && schema !== undefined) {
            t.ok(ajv.validate(schema as object, example), pointer);
        }
    });
    t.ok(checked > 20, `${checked} examples`);
    for (const { operationId, requestBody, responses } of administration(document)) {
        const bodies = [requestBody, responses[200]].flatMap((body) => body?.content?.['application/json']?.schema ?? []);
        t.ok(
            bodies.every((schema) => schema.examples !== undefined),
            `${operationId} has an example of what it takes and of what it answers`,
        );
    }
    const { webhooks } = document as { webhooks: Record<string, { post: { requestBody: { content: Record<string, Json> } } }> };
    t.ok(Object.values(webhooks).every(({ post }) => JSON.stringify(post.requestBody.content).includes('examples')));
});

interface Described {
    readonly content?: Readonly<Record<string, { readonly schema: { readonly examples?: unknown } }>>;
}

/** The operations of the administration. */
function administration(document: Json) {
    type Operation = { operationId: string; tags: string[]; requestBody?: Described; responses: Record<string, Described> };
    const paths = document.paths as Record<string, Record<string, Operation>>;
    const found = Object.values(paths)
        .flatMap((path) => Object.values(path))
        .filter(({ tags }) => tags.includes('administration'));
    t.ok(found.length > 40, `${found.length} operations`);
    return found;
}

t.test('describes what the application has by a Standard Schema as far as that tells, with examples', async (t) => {
    const schema = { '~standard': { version: 1, vendor: 'own', validate: (value: unknown) => ({ value }) } } as const;
    const store = { async *list() {}, get: async () => null };
    const jsonSchema = {
        type: 'object',
        properties: { id: { type: 'integer' }, name: { anyOf: [{ type: 'string' }, { type: 'null' }] }, at: { type: ['string', 'null'] } },
    };
    const resources = [
        { path: '/workspaces/{workspace_id}/campaigns', schema, fields: ['id', 'name', 'at'], jsonSchema, store },
        { path: '/workspaces/{workspace_id}/teams', schema, fields: ['id', 'lead'], store },
    ];
    const { components } = await documentOf(await served({ resources } as Partial<RestApiV2Options>));
    const { Campaign, Team } = (components as { schemas: { Campaign: { examples: object[] }; Team: Json } }).schemas;
    t.match(Campaign, { properties: jsonSchema.properties, examples: [{ id: 1, name: 'web-1', at: null }] });
    t.ok(ajv.validate(Campaign, Campaign.examples[0]), ajv.errorsText());
    t.match(Team, { properties: { id: {}, lead: {} }, examples: [{ id: null, lead: null }] });
});

t.test('describes the rows as they go out', async (t) => {
    const running = await whole();
    const document = await documentOf(running);
    ajv.removeSchema('whole');
    ajv.addSchema(document, 'whole');
    const paths = Object.keys(document.paths as Json).filter((path) => path.startsWith('/rest_api') && !path.endsWith('/base'));
    for (const path of paths.filter((each) => !each.includes('old-campaigns'))) {
        const pointer = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/get/responses/200/content/application~1json/schema`;
        const validate = ajv.getSchema(`whole#${encodeURI(pointer)}`);
        const { status, body } = await running.get(path.replace('/rest_api/v2', '').replaceAll(/\{\w+\}/g, '1'));
        t.equal(status, 200, path);
        const rows = JSON.parse(body);
        t.ok(validate?.(rows), `${path} ${ajv.errorsText(validate?.errors)}`);
        t.ok(!Array.isArray(rows) || rows.length > 0, path);
        const [row] = [rows].flat();
        t.notOk(validate?.(Array.isArray(rows) ? [{ ...row, other: 1 }] : { ...row, other: 1 }), 'and nothing else');
        t.equal(validate?.(Array.isArray(rows) ? [{ id: 1 }] : { id: 1 }), Array.isArray(rows), `${path}, with \`fields\` of an index`);
        const { parameters } = (document.paths as Record<string, { get: { parameters: { name: string }[] } }>)[path]?.get ?? {};
        const tellsDeletions = parameters?.some(({ name }) => name === 'deleted_since');
        t.equal(validate?.([{ id: 1, deleted_at: '2026-11-21T09:30:00.000Z' }]), tellsDeletions, `${path}, with \`deleted_since\``);
    }
    const names = Object.keys((document.components as { schemas: Json }).schemas);
    t.same(names, ['Error', 'Workspace', 'Host', 'Service', 'Note', 'Session', 'Vuln', 'WorkspaceNote', 'WorkspaceVuln', 'OldCampaign']);
});

t.test('needs a key like every path, unless it is public, and can be switched off', async (t) => {
    const { get } = await served();
    t.equal((await get('/openapi.json', { headers: {} })).status, 403);
    t.match(await get('/openapi.json/'), {
        status: 200,
        type: 'application/json; charset=utf-8',
        headers: { 'cache-control': 'no-store' },
    });
    const open = await served({ openapi: { public: true }, license: { valid: async () => false } });
    t.equal((await open.get('/openapi.json', { headers: {} })).status, 200);
    t.equal((await open.get('/workspaces')).status, 403);
    const off = await served({ openapi: { enabled: false, page: '/api-docs' } });
    t.equal((await off.get('/openapi.json')).status, 404);
    t.equal((await off.server.inject('/api-docs')).statusCode, 404);
    t.notOk('webhooks' in (await documentOf(await served())), 'no events where nobody sends any');
    const withoutKeys = JSON.parse((await (await served({ auth: false })).get('/openapi.json')).body);
    t.same(withoutKeys.security, [{}]);
});

t.test('makes a client that its compiler accepts and that reads the API', async (t) => {
    const { server, headers } = await whole();
    await server.start();
    t.after(() => server.stop());
    const folder = await mkdtemp(join(process.cwd(), 'build', 'client-'));
    t.after(() => rm(folder, { recursive: true }));
    const { payload } = await server.inject({ url: '/rest_api/v2/openapi.json', headers });
    await writeFile(join(folder, 'openapi.json'), payload);
    await writeFile(join(folder, 'api.ts'), await generateSource(join(folder, 'openapi.json')));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await writeFile(join(folder, 'use.ts'), USE);
    const options = ['--ignoreConfig', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
    await run('tsc', [...options, 'use.ts'], { cwd: folder });
    const { use } = await import(pathToFileURL(join(folder, 'use.js')).href);
    t.same(await use(server.info.uri, headers.token), ['192.0.2.1', '443/tcp', 404]);
});

const USE = `import { defaults, listWorkspacesHosts, listWorkspacesServices, showWorkspaces } from './api.js';

export async function use(baseUrl: string, token: string): Promise<unknown> {
    defaults.baseUrl = baseUrl;
    defaults.headers = { token };
    const hosts = await listWorkspacesHosts(1, { limit: 10, state: 'alive' });
    const services = await listWorkspacesServices(1);
    const unknown = await showWorkspaces(9);
    if (hosts.status !== 200 || services.status !== 200) {
        return null;
    }
    const [host, service] = [hosts.data[0], services.data[0]];
    const port: number | undefined = service?.port;
    return [host?.address, \`\${port}/\${service?.proto}\`, unknown.status];
}
`;

t.test('has a page that asks for a key, holds no data and calls nobody else', async (t) => {
    const { server, headers } = await served({ openapi: { page: '/api-docs' } }, { routes: { cors: false } });
    const page = await server.inject('/api-docs');
    t.equal(page.statusCode, 200);
    const policy = String(page.headers['content-security-policy']);
    t.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/);
    t.notMatch(policy, /unsafe|\*|https?:/);
    const asked = [...page.payload.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url = '']) => url);
    t.equal(asked.length, 4);
    for (const url of asked) {
        t.match(url, /^\/api-docs\//, 'what it loads is of this server');
        const { statusCode, headers: answered } = await server.inject(url);
        t.equal(statusCode, 200, url);
        t.match(answered, { 'x-content-type-options': 'nosniff', 'content-type': /^text\/(?:css|javascript)/ });
    }
    t.notMatch(page.payload, /<script>|<style>| on\w+=| style=/, 'nothing stands in the page that its policy forbids');
    t.notMatch(page.payload + (await server.inject('/api-docs/start.js')).payload, /localStorage|sessionStorage|document\.cookie/);
    t.same(await started(server, '/api-docs/start.js', headers.token ?? ''), {
        asked: [
            { url: '/rest_api/v2/openapi.json', headers: {} },
            { url: '/rest_api/v2/openapi.json', headers: { token: headers.token } },
        ],
        shown: '3.1.0',
        own: { token: headers.token },
        foreign: {},
        typed: '',
    });
});

interface Shown {
    readonly spec: { readonly openapi: string };
    requestInterceptor(request: object): object;
}

/** What the script of the page does when a key is entered, over the real server. */
async function started(server: Server, url: string, token: string) {
    const { payload: script } = await server.inject(url);
    const asked: { url: string; headers: Record<string, string> }[] = [];
    const key = { value: ` ${token} ` };
    let submit: (event: object) => void = () => {};
    const form = { hidden: false, addEventListener: (_: string, listener: typeof submit) => Object.assign(form, { listener }) };
    const elements: Record<string, object> = { ask: form, key, said: {} };
    let show: (options: Shown) => void = () => {};
    const shown = new Promise<Shown>((resolve) => {
        show = resolve;
    });
    const window = {
        location: new URL('https://api.example/api-docs'),
        document: { getElementById: (id: string) => elements[id] },
        SwaggerUIBundle: show,
    };
    const fetch = async (to: string, { headers }: { headers: Record<string, string> }) => {
        asked.push({ url: to, headers });
        const { statusCode, payload } = await server.inject({ url: to, headers });
        return { ok: statusCode === 200, json: async () => JSON.parse(payload) };
    };
    vm.runInNewContext(script, { window, fetch, URL });
    submit = (form as unknown as { listener: typeof submit }).listener;
    submit({ preventDefault() {} });
    const { spec, requestInterceptor } = await shown;
    const intercepted = (to: string) => (requestInterceptor({ url: to, headers: {} }) as { headers: object }).headers;
    return {
        asked,
        shown: spec.openapi,
        own: intercepted('/rest_api/v2/workspaces'),
        foreign: intercepted('https://elsewhere.example/'),
        typed: key.value,
    };
}

function walk(value: unknown, visit: (value: object, pointer: string) => void, pointer = ''): void {
    if (typeof value !== 'object' || value === null) {
        return;
    }
    visit(value, pointer);
    for (const [key, each] of Object.entries(value)) {
        if (key !== 'examples' && key !== 'example') {
            walk(each, visit, `${pointer}/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`);
        }
    }
}
